# Turns the table of tiers.cmake into targets: one OBJECT library ab_<folder> for each folder of src/, and `anabranch`,
# which stands for all of them and is what programs link.
add_library(anabranch INTERFACE)
target_compile_features(anabranch INTERFACE cxx_std_20)

# Compiles every .proto of a folder; the header is included as "<folder>/<file>.pb.h".
function(ab_compile_protos target folder)
  file(GLOB protos CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.proto)
  set(out ${PROJECT_BINARY_DIR}/generated)
  foreach(proto IN LISTS protos)
    file(RELATIVE_PATH stem ${PROJECT_SOURCE_DIR}/src ${proto})
    string(REGEX REPLACE "\\.proto$" ".pb" stem ${stem})
    add_custom_command(
      OUTPUT ${out}/${stem}.cc ${out}/${stem}.h
      COMMAND ${CMAKE_COMMAND} -E make_directory ${out}
      COMMAND ${ANABRANCH_PROTOC} --cpp_out=${out} -I${PROJECT_SOURCE_DIR}/src ${proto}
      DEPENDS ${proto} VERBATIM)
    set_source_files_properties(${out}/${stem}.cc PROPERTIES COMPILE_OPTIONS -w SKIP_PRECOMPILE_HEADERS ON)
    target_sources(${target} PRIVATE ${out}/${stem}.cc ${out}/${stem}.h)
    target_include_directories(${target} SYSTEM PRIVATE ${out})
  endforeach()
endfunction()

# ab_folder(<path> <tier> [SMALL] [PUBLIC <library>...] [PRIVATE <library>...]), called by the table in ascending tiers.
# SMALL: nothing of the folder works while a step runs, so its machine code is to be short.
function(ab_folder path tier)
  cmake_parse_arguments(PARSE_ARGV 2 folder SMALL "" "")
  set(libraries ${folder_UNPARSED_ARGUMENTS})
  if(NOT path MATCHES "^src/" OR NOT IS_DIRECTORY ${PROJECT_SOURCE_DIR}/${path})
    return()
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${path}/*.cc)
  file(GLOB protos ${PROJECT_SOURCE_DIR}/${path}/*.proto)
  get_filename_component(name ${path} NAME)
  set(target ab_${name})
  if(sources OR protos)
    add_library(${target} OBJECT ${sources})
    ab_compile_protos(${target} ${path})
    target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/src)
    target_compile_definitions(${target} PRIVATE ANABRANCH_VERSION="${PROJECT_VERSION}")
    if(folder_SMALL)
      ab_compile_small(${target})
    endif()
    ab_precompile(${target})
    set(scope PUBLIC)
    # CMake counts a precompiled header among the objects of the folder that has made it.
    set(objects "$<FILTER:$<TARGET_OBJECTS:${target}>,EXCLUDE,[.](gch|pch)$>")
    target_link_libraries(anabranch INTERFACE "${objects}")
    set_property(GLOBAL APPEND PROPERTY ab_objects "${objects}")
  else()                                              # headers only, so far
    add_library(${target} INTERFACE)
    target_include_directories(${target} INTERFACE ${PROJECT_SOURCE_DIR}/src)
    set(scope INTERFACE)
    list(TRANSFORM libraries REPLACE "^(PUBLIC|PRIVATE)$" INTERFACE)
  endif()
  get_property(below GLOBAL PROPERTY ab_folders)
  foreach(entry IN LISTS below)
    string(REGEX MATCH "^(.*):(.*)$" entry ${entry})
    if(CMAKE_MATCH_2 LESS tier)
      target_link_libraries(${target} ${scope} ab_${CMAKE_MATCH_1})
    endif()
  endforeach()
  if(libraries)
    target_link_libraries(${target} ${libraries})
  endif()
  target_link_libraries(anabranch INTERFACE ${target})
  if(NOT name STREQUAL "ops")                         # ops are reached through the registry, never linked against
    set_property(GLOBAL APPEND PROPERTY ab_folders ${name}:${tier})
  endif()
endfunction()

include(${CMAKE_CURRENT_LIST_DIR}/tiers.cmake)
