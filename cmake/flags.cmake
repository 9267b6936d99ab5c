# Compiler and linker settings of every target. Machine code above the baseline is chosen at run time (Highway,
# oneDNN), so a binary built on one machine runs on another.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# Not -O2 with vectors: it makes some files 40 % shorter, and reduce_max, isfinite, dist and bicubic_interp take about
# twice as long, because it does not write out short inner loops of a fixed length.
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-Og -g")

# No fast-math: values are part of the contract. Contraction into FMA is off because it would make a sum depend on
# the instruction set a compiler happened to choose. Paths in messages are relative to the repository, also when
# ccache has made the compiler's ones relative to the build folder.
file(RELATIVE_PATH up ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
# gcc collects garbage from 128 MB on, which takes 7 % of its time; without, a file of ours needs up to 0.6 GB.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  add_compile_options(--param=ggc-min-expand=400 --param=ggc-min-heapsize=500000)
endif()
add_compile_options(-Wall -Wextra -Wno-restrict -Wno-stringop-overflow -fno-math-errno -ffp-contract=off
                    -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/= -fmacro-prefix-map=${up}=)

if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(ANABRANCH_MARCH "x86-64-v2" CACHE STRING "baseline instruction set; empty for the compiler's own")
endif()
if(ANABRANCH_MARCH)
  add_compile_options(-march=${ANABRANCH_MARCH})
endif()

set(ANABRANCH_SANITIZE "" CACHE STRING "sanitizers for all of our code, as -fsanitize= takes them")
if(ANABRANCH_SANITIZE)
  # Null pointers and ends of objects are seen by AddressSanitizer, and x86 reads what is not aligned; looking twice
  # would take a third of the build.
  add_compile_options(-O1 -g1 -fno-omit-frame-pointer -fsanitize=${ANABRANCH_SANITIZE} -fno-sanitize-recover=all
                      -fno-sanitize=null,object-size,vptr,alignment,pointer-overflow)
  add_link_options(-fsanitize=${ANABRANCH_SANITIZE})
  # gcc: in functions of more than 30 accesses checks are calls, and uses of a name whose block has ended are not looked
  # for, which compiles up to a third faster. With calls everywhere, short loops would run at a third of their speed.
  if(ANABRANCH_SANITIZE MATCHES address AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    add_compile_options(--param=asan-instrumentation-with-call-threshold=30 -fno-sanitize-address-use-after-scope)
  endif()
endif()

# compile_timer.c records what each file costs and sets up ccache, so that checkouts share what they compile.
find_program(ANABRANCH_CCACHE ccache)
function(ab_compile_timer)
  set(program ${PROJECT_BINARY_DIR}/compile_timer)
  set(source ${PROJECT_SOURCE_DIR}/cmake/compile_timer.c)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  if(NOT EXISTS ${program} OR ${source} IS_NEWER_THAN ${program})
    execute_process(COMMAND ${CMAKE_C_COMPILER} -O1 -o ${program} ${source} COMMAND_ERROR_IS_FATAL ANY)
  endif()
  set(launcher ${program} ${PROJECT_BINARY_DIR}/compile-times.tsv ${PROJECT_SOURCE_DIR})
  if(ANABRANCH_CCACHE)
    list(APPEND launcher ${ANABRANCH_CCACHE})
  endif()
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher} PARENT_SCOPE)
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher} PARENT_SCOPE)
endfunction()
if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
  ab_compile_timer()
endif()

find_program(ANABRANCH_MOLD mold)
if(ANABRANCH_MOLD)
  include(CheckLinkerFlag)
  check_linker_flag(CXX -fuse-ld=mold ANABRANCH_MOLD_WORKS)
  if(ANABRANCH_MOLD_WORKS)
    add_link_options(-fuse-ld=mold)
  endif()
endif()
