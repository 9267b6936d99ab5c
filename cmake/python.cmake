# The nanobind module _core of the package anabranch, and its type stub.
file(GLOB bindings CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/bindings/*.cc)
if(NOT bindings)
  return()
endif()
# SKBUILD_SABI_COMPONENT: set if scikit-build-core builds a module for this CPython and all later ones.
find_package(Python 3.8 REQUIRED COMPONENTS Interpreter Development.Module ${SKBUILD_SABI_COMPONENT})
execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
                OUTPUT_VARIABLE nanobind_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
find_package(nanobind CONFIG REQUIRED)

set(package ${PROJECT_BINARY_DIR}/python)             # `./dev build` links this folder's files into python/anabranch
nanobind_add_module(_core NB_STATIC NOMINSIZE STABLE_ABI ${bindings})
# nanobind's own sources as one unit, which it has for that: a third of the time.
foreach(library nanobind-static nanobind-static-abi3)
  if(TARGET ${library})
    set_property(TARGET ${library} PROPERTY SOURCES ${NB_DIR}/src/nb_combined.cpp)
  endif()
endforeach()
target_include_directories(_core PRIVATE ${PROJECT_SOURCE_DIR}/python/bindings)
target_compile_definitions(_core PRIVATE ANABRANCH_VERSION="${PROJECT_VERSION}")
target_link_libraries(_core PRIVATE anabranch)
target_compile_options(_core PRIVATE $<$<CONFIG:Release>:-O1>)  # converts arguments and calls the engine
ab_unity(_core 5)
ab_precompile(_core module <fmt/format.h> <nanobind/nanobind.h> <nanobind/stl/vector.h> <nanobind/stl/shared_ptr.h>)
# Another copy of protobuf in the same process must not meet ours.
target_link_options(_core PRIVATE -Wl,--exclude-libs,ALL)
set_target_properties(_core PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${package})

install(TARGETS _core LIBRARY DESTINATION anabranch COMPONENT python EXCLUDE_FROM_ALL)

# The files that the Python package loads: the module, its stub and the plug-ins that could be built.
add_custom_target(python_package DEPENDS _core)
foreach(plugin anabranch_grpc anabranch_gloo)
  if(TARGET ${plugin})
    add_dependencies(python_package ${plugin})
  endif()
endforeach()
if(ANABRANCH_SANITIZE)  # such a module loads only where the sanitizer is preloaded
  return()
endif()

# A stub helps editors and mypy; a build without one is still a build.
add_custom_command(
  OUTPUT ${package}/_core.pyi
  COMMAND sh -c "'${Python_EXECUTABLE}' -m nanobind.stubgen -q -m _core -i . -o _core.pyi || touch _core.pyi"
  DEPENDS _core WORKING_DIRECTORY ${package} VERBATIM)
add_custom_target(stub ALL DEPENDS ${package}/_core.pyi)
add_dependencies(python_package stub)
install(FILES ${package}/_core.pyi DESTINATION anabranch COMPONENT python EXCLUDE_FROM_ALL OPTIONAL)
