# The libraries that the engine uses, each as one target. oneDNN, Highway and protobuf are found by header and library,
# because Debian's CMake files require packages that the engine does not use. They are shared libraries, because Debian's
# static ones are not position-independent.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)

# ab_find(<name> <header> <library>...): target ab::<name>.
function(ab_find name header)
  find_path(ANABRANCH_${name}_INCLUDE ${header} REQUIRED)
  add_library(ab_${name} INTERFACE)
  add_library(ab::${name} ALIAS ab_${name})
  target_include_directories(ab_${name} SYSTEM INTERFACE ${ANABRANCH_${name}_INCLUDE})
  foreach(library IN LISTS ARGN)
    find_library(ANABRANCH_${name}_${library} ${library} REQUIRED)
    target_link_libraries(ab_${name} INTERFACE ${ANABRANCH_${name}_${library}})
  endforeach()
endfunction()

ab_find(dnnl dnnl.hpp dnnl)
ab_find(hwy hwy/highway.h hwy_contrib hwy)
ab_find(zlib zlib.h z)
ab_find(zstd zstd.h zstd)
ab_find(json nlohmann/json.hpp)
ab_find(protobuf google/protobuf/message_lite.h protobuf-lite)
target_link_libraries(ab_protobuf INTERFACE Threads::Threads)
find_program(ANABRANCH_PROTOC protoc REQUIRED)
