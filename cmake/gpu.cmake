# The GPU parts: kernels/*.cu and the sweeps calibrate/measure/*.cu, together the program orrery-calibrate. Built where
# a CUDA compiler is found and never needed otherwise.
file(GLOB kernel_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/kernels/*.cu)
file(GLOB sweep_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/calibrate/measure/*.cu)
if(NOT ORRERY_CUDA OR NOT (kernel_sources OR sweep_sources))
  return()
endif()

find_program(ORRERY_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
if(ORRERY_NVCC AND NOT CMAKE_CUDA_COMPILER)
  set(CMAKE_CUDA_COMPILER ${ORRERY_NVCC})
endif()
include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  message(STATUS "GPU parts: not built, no CUDA compiler found (everything else works without)")
  return()
endif()
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(architectures_chosen_here ON)
  set(CMAKE_CUDA_ARCHITECTURES 80)
endif()
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)

# Code for A100, H100 and B200 as far as the compiler knows them; later GPUs compile the intermediate code of the last
# one when they load it.
if(architectures_chosen_here)
  if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.8)
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 100)
  elseif(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 11.8)
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
  endif()
endif()
message(STATUS "GPU parts: ${CMAKE_CUDA_COMPILER}, architectures ${CMAKE_CUDA_ARCHITECTURES}")

set(CMAKE_CUDA_STANDARD 17)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
# 1217: GLib marks functions in a way that the compiler for the device does not know.
set(cuda_flags -Xcompiler=-Wall -diag-suppress=1217 $<$<BOOL:${ORRERY_WERROR}>:-Werror=all-warnings>)

add_library(orrery_kernels STATIC ${kernel_sources})
target_include_directories(orrery_kernels PUBLIC ${CMAKE_SOURCE_DIR})
target_compile_options(orrery_kernels PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:${cuda_flags}>")
target_link_libraries(orrery_kernels PUBLIC CUDA::cudart_static CUDA::cublasLt ${CMAKE_DL_LIBS})

# The program is carried to nodes that have a driver, CUDA and NCCL and little else. The few C files that it shares with
# the rest are compiled into it; GLib and cJSON are linked statically where their archives are, else looked for beside
# the program; NCCL and NVML are loaded when it runs.
find_library(GLIB_ARCHIVE libglib-2.0.a HINTS ${GLIB_LIBRARY_DIRS})
find_library(PCRE2_ARCHIVE libpcre2-8.a HINTS ${GLIB_LIBRARY_DIRS})
find_library(CJSON_ARCHIVE libcjson.a HINTS ${CJSON_LIBRARY_DIRS})
set(carried_libraries PkgConfig::GLIB)
if(GLIB_ARCHIVE AND PCRE2_ARCHIVE)
  set(carried_libraries ${GLIB_ARCHIVE} ${PCRE2_ARCHIVE})
endif()
if(CJSON_ARCHIVE)
  list(APPEND carried_libraries ${CJSON_ARCHIVE})
else()
  list(APPEND carried_libraries PkgConfig::CJSON)
endif()

file(GLOB base_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/base/*.c)
list(TRANSFORM SWEEP_HOST_SOURCES PREPEND ${CMAKE_SOURCE_DIR}/calibrate/ OUTPUT_VARIABLE host_sources)
find_package(Threads REQUIRED)
add_executable(orrery-calibrate ${sweep_sources} ${host_sources} ${base_sources})
target_include_directories(orrery-calibrate PRIVATE ${GLIB_INCLUDE_DIRS} ${CJSON_INCLUDE_DIRS})
target_compile_definitions(orrery-calibrate PRIVATE ORRERY_VERSION="${PROJECT_VERSION}"
  ORRERY_SOURCE_SCENARIOS="${CMAKE_SOURCE_DIR}/scenarios" $<$<COMPILE_LANGUAGE:C>:_POSIX_C_SOURCE=200809L>)
target_compile_options(orrery-calibrate PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:${cuda_flags}>"
  "$<$<COMPILE_LANGUAGE:C>:${c_flags}>")
target_link_libraries(orrery-calibrate PRIVATE orrery_kernels ${carried_libraries} Threads::Threads ${CMAKE_DL_LIBS} m)
target_link_options(orrery-calibrate PRIVATE -static-libstdc++ -static-libgcc)
set_target_properties(orrery-calibrate PROPERTIES INSTALL_RPATH "$ORIGIN;$ORIGIN/../lib" BUILD_RPATH "$ORIGIN")
install(TARGETS orrery-calibrate)

# cmake --install FOLDER --component carry --prefix ELSEWHERE: the program, and what a bare node may lack, beside it.
install(TARGETS orrery-calibrate COMPONENT carry EXCLUDE_FROM_ALL)
if(NOT CJSON_ARCHIVE)
  find_library(CJSON_SHARED cjson HINTS ${CJSON_LIBRARY_DIRS})
  if(CJSON_SHARED)
    get_filename_component(cjson_real ${CJSON_SHARED} REALPATH)
    install(FILES ${cjson_real} DESTINATION lib RENAME libcjson.so.1 COMPONENT carry EXCLUDE_FROM_ALL)
  endif()
endif()
