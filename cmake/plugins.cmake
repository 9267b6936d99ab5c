# Shared libraries that the package loads when they are wanted: each needs a library that many users never do. They use
# headers of src/ that need no symbol of the engine.
find_path(ANABRANCH_grpc_INCLUDE grpcpp/grpcpp.h)
find_library(ANABRANCH_grpc_grpcpp grpc++)
find_library(ANABRANCH_grpc_grpc grpc)
find_library(ANABRANCH_grpc_gpr gpr)
if(NOT ANABRANCH_grpc_INCLUDE OR NOT ANABRANCH_grpc_grpcpp OR NOT ANABRANCH_grpc_grpc OR NOT ANABRANCH_grpc_gpr)
  message(STATUS "gRPC was not found: parameter servers work within one process only")
  return()
endif()

file(GLOB grpc_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/plugins/grpc/*.cc)
add_library(anabranch_grpc MODULE ${grpc_sources})
target_include_directories(anabranch_grpc PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_include_directories(anabranch_grpc SYSTEM PRIVATE ${ANABRANCH_grpc_INCLUDE})
target_link_libraries(anabranch_grpc PRIVATE ${ANABRANCH_grpc_grpcpp} ${ANABRANCH_grpc_grpc} ${ANABRANCH_grpc_gpr}
                                             Threads::Threads)
set_target_properties(anabranch_grpc PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden
                                                LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/python)
install(TARGETS anabranch_grpc LIBRARY DESTINATION anabranch)
