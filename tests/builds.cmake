# Which build runs a test, and the program that holds it.

# A test runs once, in the build where it can fail: what walks memory under the sanitizers, what compares numbers, words
# and files in the optimised build. builds.txt lists the exceptions.
file(STRINGS builds.txt build_rows REGEX "^[^#]")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS builds.txt)
foreach(row ${build_rows})
  string(REGEX MATCH "^([^ ]+) +([a-z]+)$" matched "${row}")
  set(builds_of_${CMAKE_MATCH_1} ${CMAKE_MATCH_2})
endforeach()

# Sets `variable` to the builds of a test: optimised, sanitized or both.
function(orrery_test_builds variable test)
  set(builds optimised)
  if(test MATCHES "^(unit|fuzz|gpu|api)/")
    set(builds sanitized)
  endif()
  if(DEFINED builds_of_${test})
    set(builds ${builds_of_${test}})
  endif()
  if(builds STREQUAL both)
    set(builds optimised sanitized)
  endif()
  set(${variable} "${builds}" PARENT_SCOPE)
endfunction()

# Sets `variable` to whether this build holds a test.
function(orrery_test_is_here variable test)
  orrery_test_builds(builds ${test})
  if(ORRERY_TEST_BUILD STREQUAL all OR ORRERY_TEST_BUILD IN_LIST builds)
    set(${variable} TRUE PARENT_SCOPE)
  else()
    set(${variable} FALSE PARENT_SCOPE)
  endif()
endfunction()

# Labels each test of this folder's CMakeLists.txt with its builds: `ctest -L optimised`.
function(orrery_label_builds)
  get_property(tests DIRECTORY PROPERTY TESTS)
  foreach(test ${tests})
    orrery_test_builds(builds ${test})
    set_property(TEST ${test} APPEND PROPERTY LABELS ${builds})
  endforeach()
endfunction()

# A program of many tests: each source's main() has a name of its own there, and a link named as the test chooses which
# one runs. Each test stays a process with its own name; what is linked once is linked once.
function(orrery_test_program program)
  set(names "")
  foreach(source ${ARGN})
    get_filename_component(name ${source} NAME_WE)
    list(APPEND names ${name})
    set_property(SOURCE ${source} APPEND PROPERTY COMPILE_DEFINITIONS main=${name}_main)
  endforeach()
  list(JOIN names ")\nTEST(" rows)
  set(table ${CMAKE_CURRENT_BINARY_DIR}/${program}.c)
  file(CONFIGURE OUTPUT ${table} CONTENT "#define TESTS \"${program}.inc\"\n#include \"tests/main.h\"\n")
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${program}.inc CONTENT "TEST(${rows})\n")
  add_executable(${program} ${table} ${ARGN})
  target_include_directories(${program} PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR})
  if(ORRERY_TEST_BUILD STREQUAL sanitized) # a test's own code is short: compiling it took longer than running it
    target_compile_options(${program} PRIVATE -O0)
  endif()
  list(JOIN names " " words)
  add_custom_command(TARGET ${program} POST_BUILD WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}
    COMMAND sh -c "for name in ${words}; do ln -sf ${program} $name; done" VERBATIM)
  foreach(name ${names})
    add_custom_target(${name} DEPENDS ${program})
  endforeach()
endfunction()
