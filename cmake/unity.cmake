# Unity builds: several files of a folder are compiled as one unit, which reads their headers and instantiates common
# templates once. The sizes in tiers.cmake keep a unit below 12 CPU seconds and leave enough units for parallel builds.
# Debug, sanitizer and lint builds compile each file alone: they find a file that relies on its neighbors' includes, and
# an edit recompiles one file.
set(unity OFF)
if(CMAKE_BUILD_TYPE STREQUAL Release)
  set(unity ON)
endif()
option(ANABRANCH_UNITY "compile several files of a folder as one unit" ${unity})

# ab_unity(<target> <files>) compiles <files> files of a target as one unit; empty: each file alone. Files that Highway
# compiles once for each instruction set are compiled alone, and so are those listed below, which are large or define names
# that other files of their folder define, too. CMake's own UNITY_BUILD writes absolute paths, so another checkout would
# find nothing in ccache.
function(ab_unity target files)
  if(NOT ANABRANCH_UNITY OR NOT files)
    return()
  endif()
  target_compile_options(${target} PRIVATE -Wno-subobject-linkage)  # takes the files of a unit for headers
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  set(same_names rank_table.cc elementwise.cc conv_op.cc conv_plain.cc stacked_lstm_backward.cc grad_sources.cc)
  set(large cast.cc compare.cc inplace_abn.cc pool.cc reduce.cc resize.cc)
  get_target_property(sources ${target} SOURCES)
  set(unit)
  set(count 0)
  foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME)
    get_filename_component(source ${source} ABSOLUTE)
    file(STRINGS ${source} per_target REGEX "foreach_target.h" LIMIT_COUNT 1)
    if(NOT per_target AND NOT name IN_LIST same_names AND NOT name IN_LIST large)
      set_source_files_properties(${source} PROPERTIES HEADER_FILE_ONLY ON)
      file(RELATIVE_PATH source ${PROJECT_SOURCE_DIR} ${source})
      list(APPEND unit "#include \"${source}\"\n")
      ab_write_unit(${target} ${files})
    endif()
  endforeach()
  ab_write_unit(${target} 1)
endfunction()

# Writes the lines in `unit` to a file of the target once there are enough.
macro(ab_write_unit target enough)
  list(LENGTH unit lines)
  if(NOT lines LESS ${enough})
    set(file ${PROJECT_BINARY_DIR}/CMakeFiles/${target}.dir/Unity/unity_${count}_cxx.cxx)
    list(JOIN unit "" text)
    file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
    target_sources(${target} PRIVATE ${file})
    math(EXPR count "${count} + 1")
    set(unit)
  endif()
endmacro()
