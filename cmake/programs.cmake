# The programs that use the engine: C++ tests, benchmarks and examples. To add one, add a file. None of them is part of the
# default target: `./dev` names the targets that a command needs.
add_custom_target(cpp_tests)
add_custom_target(cpp_programs)

# ab_programs(<folder> <library>...): one program for each .cc of the folder.
function(ab_programs folder)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cc)
  foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} EXCLUDE_FROM_ALL ${source})
    target_link_libraries(${name} PRIVATE anabranch ${ARGN})
    add_dependencies(cpp_programs ${name})
  endforeach()
endfunction()

# Tests spend their time in the engine, so optimizing their own code gains little.
function(ab_test_options target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

if(ANABRANCH_BUILD_TESTS)
  enable_testing()
  file(GLOB tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/cpp/*_test.cc ${PROJECT_SOURCE_DIR}/tests/cpp/sim/*.cc)
  if(tests)
    find_package(GTest REQUIRED)
    include(GoogleTest)
    add_executable(anabranch_tests EXCLUDE_FROM_ALL ${tests} ${PROJECT_SOURCE_DIR}/tests/cpp/resting_threads.cc)
    target_include_directories(anabranch_tests PRIVATE ${PROJECT_SOURCE_DIR}/tests/cpp)
    target_link_libraries(anabranch_tests PRIVATE anabranch GTest::gmock GTest::gtest GTest::gtest_main)
    ab_test_options(anabranch_tests)
    ab_precompile(anabranch_tests tests <fmt/format.h> <gmock/gmock.h> <gtest/gtest.h>)
    if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
      # gcc 12 warns falsely where a literal is appended to a temporary std::string (its bug 105651).
      set_source_files_properties(tests/cpp/data_parts_test.cc tests/cpp/layout_test.cc tests/cpp/steady/steady.cc
                                  PROPERTIES COMPILE_OPTIONS -Wno-array-bounds)
    endif()
    gtest_discover_tests(anabranch_tests DISCOVERY_MODE PRE_TEST WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                         DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300)
    # Counts heap calls by taking their place, which other tests must not be slowed or confused by.
    file(GLOB tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/cpp/steady/*.cc)
    add_executable(anabranch_steady_tests EXCLUDE_FROM_ALL ${tests})
    target_include_directories(anabranch_steady_tests PRIVATE ${PROJECT_SOURCE_DIR}/tests/cpp)
    target_link_libraries(anabranch_steady_tests PRIVATE anabranch GTest::gmock GTest::gtest GTest::gtest_main
                                                         ${CMAKE_DL_LIBS})
    ab_test_options(anabranch_steady_tests)
    ab_precompile(anabranch_steady_tests tests)
    gtest_discover_tests(anabranch_steady_tests DISCOVERY_MODE PRE_TEST WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                         DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300)
    add_dependencies(cpp_tests anabranch_tests anabranch_steady_tests)
    ab_programs(tests/cpp/replay)                     # run by tests/trials/test_loop_replay.py
  endif()
endif()

if(ANABRANCH_BUILD_EXAMPLES)
  ab_programs(examples/cpp)
  if(ANABRANCH_BUILD_TESTS AND TARGET train_regression)
    add_test(NAME example_train_regression COMMAND train_regression)
    set_tests_properties(example_train_regression PROPERTIES TIMEOUT 60 PASS_REGULAR_EXPRESSION "last loss 0\\.000")
    add_dependencies(cpp_tests train_regression)
  endif()
  file(GLOB benchmarks ${PROJECT_SOURCE_DIR}/benchmarks/cpp/*.cc)
  if(benchmarks)
    find_package(benchmark REQUIRED)
    ab_programs(benchmarks/cpp benchmark::benchmark)
  endif()
endif()
