# Unity builds: several files of a folder are compiled as one unit, which reads their headers and instantiates common
# templates once. The sizes in tiers.cmake keep a unit below 12 CPU seconds and leave enough units for parallel builds.
# Debug, sanitizer and lint builds compile each file alone: they find a file that relies on its neighbours' includes, and
# an edit recompiles one file.
set(unity OFF)
if(CMAKE_BUILD_TYPE STREQUAL Release)
  set(unity ON)
endif()
option(ANABRANCH_UNITY "compile several files of a folder as one unit" ${unity})

# ab_unity(<target> <files>): files of a target a unit; empty: each file alone. In src/ops and src/graph/passes a file is in a
# unit only if it has its own namespace (`namespace anabranch::nn::dropout_op`): operators and passes use the same names
# (infer, forward, run), and a file that defines what a header declares cannot have one. Large files stay
# alone, too.
function(ab_unity target files)
  if(NOT ANABRANCH_UNITY OR NOT files)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${files})
  get_target_property(sources ${target} SOURCES)
  set(alone)
  set(large inplace_abn.cc pool.cc resize.cc)  # a unit with them would take too long
  foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME)
    if(name IN_LIST large)
      list(APPEND alone ${source})
    endif()
    if(target MATCHES "^ab_ops" OR source MATCHES "/src/graph/passes/")
      file(STRINGS ${source} own REGEX "^namespace anabranch::.*_op {" LIMIT_COUNT 1)
      if(NOT own)
        list(APPEND alone ${source})
      endif()
    endif()
  endforeach()
  if(alone)
    set_source_files_properties(${alone} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()
