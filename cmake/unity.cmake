# Unity builds: several files of a folder are compiled as one unit, which reads their headers and instantiates common
# templates once. The sizes in tiers.cmake keep a unit below 12 CPU seconds and leave enough units for parallel builds.
# Debug, sanitizer and lint builds compile each file alone: they find a file that relies on its neighbours' includes, and
# an edit recompiles one file.
set(unity OFF)
if(CMAKE_BUILD_TYPE STREQUAL Release)
  set(unity ON)
endif()
option(ANABRANCH_UNITY "compile several files of a folder as one unit" ${unity})

# ab_unity(<target> <files>): files of a target a unit; empty: each file alone. Alone are files that Highway compiles once
# for each instruction set, and those below: they use names that other files of their folder use, or are large.
function(ab_unity target files)
  if(NOT ANABRANCH_UNITY OR NOT files)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${files})
  target_compile_options(${target} PRIVATE -Wno-subobject-linkage)  # takes the files of a unit for headers
  set(same_names
      rank_table.cc elementwise.cc conv_op.cc conv_plain.cc gru_steps_on_device.cc lstm_backward.cc lstm_forward.cc
      lstm_on_device.cc lstm_steps_on_device.cc simple_steps_on_device.cc stacked_lstm_back_on_device.cc
      stacked_lstm_backward.cc stacked_lstm_on_device.cc grad_sources.cc)
  set(large cast.cc compare.cc inplace_abn.cc pool.cc reduce.cc resize.cc)
  get_target_property(sources ${target} SOURCES)
  set(alone)
  foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME)
    file(STRINGS ${source} per_target REGEX "foreach_target.h" LIMIT_COUNT 1)
    if(per_target OR name IN_LIST same_names OR name IN_LIST large)
      list(APPEND alone ${source})
    endif()
  endforeach()
  if(alone)
    set_source_files_properties(${alone} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()
