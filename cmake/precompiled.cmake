# Precompiled headers: a third of the time of a small file is spent on reading the standard library and fmt. Where
# nearly every file of a folder includes one header of ours, that header is precompiled, too (HEADER in tiers.cmake).
# Every file keeps its own includes: a build without precompiled headers (ANABRANCH_PRECOMPILED=OFF) and clang-tidy, which
# reads none of this, check that.
set(ANABRANCH_FIRST_HEADER "" CACHE FILEPATH "what every file includes first: the switch of planted defects, else nothing")
set(ab_standard_headers
    ${ANABRANCH_FIRST_HEADER}
    <algorithm> <array> <atomic> <cmath> <cstdint> <cstring> <functional> <limits> <map> <memory> <mutex> <numeric>
    <optional> <set> <span> <string> <string_view> <type_traits> <unordered_map> <utility> <variant> <vector>)

# ab_precompile(<target> <group> [<header>...]): the standard library and these headers. The targets of a group are compiled
# by the same options, for gcc crashes where the levels of optimization differ, and share one file, which is made for the
# first of them.
function(ab_precompile target group)
  if(NOT ANABRANCH_PRECOMPILED)
    return()
  endif()
  get_property(first GLOBAL PROPERTY ab_precompiled_${group})
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
  else()
    target_precompile_headers(${target} PRIVATE ${ab_standard_headers} ${ARGN})
    set_property(GLOBAL PROPERTY ab_precompiled_${group} ${target})
  endif()
  # ccache has to see what a precompiled header contains, which CMake's default prevents.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
endfunction()
