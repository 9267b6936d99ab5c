# Shared libraries that the package loads on demand: each depends on a library that many users never need. They use
# headers of src/ that need no symbol of the engine.

# ab_plugin(<name> <what is missing without it> <header> <library>...): the folder plugins/<name>, when all of them are
# there.
function(ab_plugin name without header)
  find_path(ANABRANCH_${name}_INCLUDE ${header})
  set(found ${ANABRANCH_${name}_INCLUDE})
  set(libraries)
  foreach(library IN LISTS ARGN)
    find_library(ANABRANCH_${name}_${library} ${library})
    list(APPEND libraries ${ANABRANCH_${name}_${library}})
    if(NOT ANABRANCH_${name}_${library})
      set(found FALSE)
    endif()
  endforeach()
  if(NOT found)
    message(STATUS "${name} was not found: ${without}")
    return()
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/plugins/${name}/*.cc)
  add_library(anabranch_${name} MODULE ${sources})
  target_include_directories(anabranch_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_include_directories(anabranch_${name} SYSTEM PRIVATE ${ANABRANCH_${name}_INCLUDE})
  target_link_libraries(anabranch_${name} PRIVATE ${libraries} Threads::Threads)
  set_target_properties(anabranch_${name} PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden
                                                     LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/python)
  install(TARGETS anabranch_${name} LIBRARY DESTINATION anabranch COMPONENT python EXCLUDE_FROM_ALL)
  install(TARGETS anabranch_${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/anabranch COMPONENT cpp ${ab_at_install})
endfunction()

if(ANABRANCH_CORE)  # installed with the engine; they do not depend on Python
  install(DIRECTORY ${ANABRANCH_CORE}/${CMAKE_INSTALL_LIBDIR}/anabranch/ DESTINATION anabranch COMPONENT python
          EXCLUDE_FROM_ALL)
  return()
endif()

ab_plugin(grpc "parameter servers work within one process only" grpcpp/grpcpp.h grpc++ grpc gpr)
ab_plugin(gloo "processes without servers cannot add up" gloo/rendezvous/context.h gloo)

# NVIDIA GPUs. Off by default: compiling the kernels takes minutes. The plug-in has run on one H100.
option(ANABRANCH_CUDA_PLUGIN "the plug-in for GPUs, compiled by an nvcc of CUDA 13 or later" OFF)
function(ab_cuda_plugin)
  include(${PROJECT_SOURCE_DIR}/cmake/cuda.cmake)
  ab_find_nvcc()
  if(NOT ANABRANCH_NVCC)
    message(FATAL_ERROR "no nvcc of CUDA 13 or later; looked for${ANABRANCH_NVCC_MISSING}. tools/setup/cuda.py fetches one")
  endif()
  message(STATUS "GPUs: ${ANABRANCH_NVCC}")
  add_subdirectory(${PROJECT_SOURCE_DIR}/plugins/cuda)
  set_target_properties(anabranch_cuda PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/python)
endfunction()
if(ANABRANCH_CUDA_PLUGIN)
  ab_cuda_plugin()
elseif(ANABRANCH_BUILD_TESTS AND NOT ANABRANCH_SANITIZE)
  # The tests of its host code, which need no toolkit. Not under sanitizers, which count on libraries being what they say.
  set(ANABRANCH_NVCC)
  set(ANABRANCH_CUDA_ARCHITECTURE 90)
  add_subdirectory(${PROJECT_SOURCE_DIR}/plugins/cuda)
endif()
if(TARGET cuda_tests)
  add_dependencies(cpp_tests cuda_tests)
endif()

# The simulated device, for tests only: it is never installed.
if(ANABRANCH_BUILD_TESTS)
  add_subdirectory(${PROJECT_SOURCE_DIR}/plugins/simdevice)
  set_target_properties(anabranch_simdevice PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/python)
  if(TARGET simdevice_tests)
    add_dependencies(cpp_tests anabranch_simdevice simdevice_tests device_kernels_test)
  endif()
endif()
