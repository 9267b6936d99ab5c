# Creates a target for each row of tiers.cmake: an OBJECT library ab_<folder> for each folder of src/. Programs link the
# target `anabranch`, which contains all of them.
add_library(anabranch INTERFACE)
target_compile_features(anabranch INTERFACE cxx_std_20)
add_custom_target(generated_headers)

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
    add_custom_target(generated_${target} DEPENDS ${out}/${stem}.h)
    add_dependencies(generated_headers generated_${target})
    target_include_directories(${target} SYSTEM PRIVATE ${out})
  endforeach()
endfunction()

# ab_objects(<target> <source>...): an OBJECT library of a folder's files, which `anabranch` links.
function(ab_objects target)
  add_library(${target} OBJECT ${ARGN})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_compile_definitions(${target} PRIVATE ANABRANCH_VERSION="${PROJECT_VERSION}")
  # CMake counts a precompiled header among the objects of the folder that has made it.
  set(objects "$<FILTER:$<TARGET_OBJECTS:${target}>,EXCLUDE,[.](gch|pch)$>")
  target_link_libraries(anabranch INTERFACE "${objects}" ${target})
  set_property(GLOBAL APPEND PROPERTY ab_objects "${objects}")
endfunction()

# ab_link_below(<target> <tier> <library>...): libraries, and all folders of lower tiers.
function(ab_link_below target tier)
  get_property(folders GLOBAL PROPERTY ab_folders)
  foreach(entry IN LISTS folders)
    string(REGEX MATCH "^(.*):(.*)$" entry ${entry})
    if(CMAKE_MATCH_2 LESS tier)
      target_link_libraries(${target} PUBLIC ab_${CMAKE_MATCH_1})
    endif()
  endforeach()
  if(ARGN)
    target_link_libraries(${target} ${ARGN})
  endif()
endfunction()

# ab_folder(<path> <tier> [LEVEL <option>] [UNITY <files>] [HEADER <header>] [COLD <subfolder>...]
#           [PUBLIC <library>...] [PRIVATE <library>...]), called by the table in ascending tiers.
# LEVEL: how a release is optimized; without it at -O3.
# UNITY: how many files are compiled together (cmake/unity.cmake).
# HEADER: one of ours that nearly every file of the folder includes; it is precompiled, too.
# COLD: subfolders whose kernels are never a hot spot; they are compiled at -O1.
function(ab_folder path tier)
  cmake_parse_arguments(PARSE_ARGV 2 folder "" "LEVEL;UNITY;HEADER" "COLD;PUBLIC;PRIVATE")
  if(NOT path MATCHES "^src/" OR NOT IS_DIRECTORY ${PROJECT_SOURCE_DIR}/${path})
    return()
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${path}/*.cc)
  get_filename_component(name ${path} NAME)
  set(group engine)
  set(header)
  if(folder_HEADER)
    set(group ${name})
    set(header "\"${folder_HEADER}\"")
  endif()
  foreach(part _cold "")
    set(own ${sources})
    set(level ${folder_LEVEL})
    if(part)
      list(JOIN folder_COLD "|" families)
      list(FILTER own INCLUDE REGEX "/${path}/(${families})/")
      set(level -O1)
    endif()
    if(own AND NOT (part AND families STREQUAL ""))
      set(target ab_${name}${part})
      list(REMOVE_ITEM sources ${own})
      ab_objects(${target} ${own})
      target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:${level}>)
      ab_precompile(${target} ${group}${level} <fmt/format.h> ${header})
      ab_unity(${target} "${folder_UNITY}")
      ab_link_below(${target} ${tier} PUBLIC ${folder_PUBLIC} PRIVATE ${folder_PRIVATE})
    endif()
  endforeach()
  ab_compile_protos(ab_${name} ${path})
  if(NOT name STREQUAL "ops")  # ops are reached through the registry, never linked against
    set_property(GLOBAL APPEND PROPERTY ab_folders ${name}:${tier})
  endif()
endfunction()

include(${CMAKE_CURRENT_LIST_DIR}/tiers.cmake)
