# Built from a checkout that Homebrew can clone: brew install --HEAD packaging/homebrew/orrery.rb. The checkout is that of this file,
# or $HOMEBREW_ORRERY_SOURCE.
class Orrery < Formula
  desc "Clockwork model of a training cluster: step time, memory, the best layout"
  license "Apache-2.0"
  head "file://#{ENV.fetch("HOMEBREW_ORRERY_SOURCE", File.expand_path("../..", __dir__))}", using: :git

  depends_on "cmake" => :build
  depends_on "ninja" => :build
  depends_on "pkg-config" => :build
  depends_on "cjson"
  depends_on "glib"
  depends_on "gnuplot"

  uses_from_macos "zlib"

  def install
    system "cmake", "-S", ".", "-B", "build", "-G", "Ninja", "-DORRERY_CUDA=OFF", "-DBUILD_TESTING=OFF", *std_cmake_args
    system "cmake", "--build", "build"
    system "cmake", "--install", "build"
  end

  test do
    assert_match "STEP", shell_output("#{bin}/orrery run #{share}/orrery/scenarios/examples/gpt3-175b.json")
  end
end
