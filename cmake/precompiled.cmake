# Precompiled headers: a third of the time of a small file is spent on reading the standard library and fmt. Only headers
# of the system are in them, so editing one of ours rebuilds no more than before. Every file keeps its own includes: a
# build without (ANABRANCH_PRECOMPILED=OFF) and clang-tidy, which reads none of this, hold them to it.
set(ANABRANCH_FIRST_HEADER "" CACHE FILEPATH "what every file includes first: the switch of planted defects, else nothing")
set(ab_system_headers
    ${ANABRANCH_FIRST_HEADER}
    <algorithm> <array> <atomic> <cmath> <cstdint> <cstring> <functional> <limits> <map> <memory> <mutex> <numeric>
    <optional> <set> <span> <string> <string_view> <type_traits> <unordered_map> <utility> <variant> <vector>
    <fmt/format.h>)

# ab_precompile(<target> [<header>...]): the headers above and further ones for a target. Without further ones targets
# share one file, which is made for the first of them, and another one if they are compiled small.
function(ab_precompile target)
  if(NOT ANABRANCH_PRECOMPILED)
    return()
  endif()
  get_target_property(small ${target} ab_small)
  set(shared ab_precompiled)
  if(small)
    set(shared ab_precompiled_small)
  endif()
  get_property(first GLOBAL PROPERTY ${shared})
  if(first AND NOT ARGN)
    target_precompile_headers(${target} REUSE_FROM ${first})
  else()
    target_precompile_headers(${target} PRIVATE ${ab_system_headers} ${ARGN})
    if(NOT ARGN)
      set_property(GLOBAL PROPERTY ${shared} ${target})
    endif()
  endif()
  # ccache wants to see what a precompiled header holds, and CMake would not let it.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
endfunction()
