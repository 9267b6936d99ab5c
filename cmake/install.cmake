# For C++ programs outside of this tree: one archive of all folders, their headers, and what find_package(anabranch)
# reads. Headers of src/ops are not among them: ops are reached through the registry.
include(CMakePackageConfigHelpers)

set(ab_at_install)
if(NOT ANABRANCH_INSTALL)
  set(ab_at_install EXCLUDE_FROM_ALL)  # `./dev install` asks for it by name
endif()
get_property(objects GLOBAL PROPERTY ab_objects)
add_library(anabranch_archive STATIC ${ab_at_install} ${objects})
set_target_properties(anabranch_archive PROPERTIES OUTPUT_NAME anabranch LINKER_LANGUAGE CXX)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/anabranch)
configure_package_config_file(cmake/anabranchConfig.cmake.in ${PROJECT_BINARY_DIR}/anabranchConfig.cmake
                              INSTALL_DESTINATION ${package} PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/anabranchConfigVersion.cmake COMPATIBILITY SameMinorVersion)

install(TARGETS anabranch_archive ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT cpp ${ab_at_install})
install(DIRECTORY src/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/anabranch COMPONENT cpp ${ab_at_install}
        FILES_MATCHING PATTERN "*.h" PATTERN ops EXCLUDE)
install(FILES ${PROJECT_BINARY_DIR}/anabranchConfig.cmake ${PROJECT_BINARY_DIR}/anabranchConfigVersion.cmake
        DESTINATION ${package} COMPONENT cpp ${ab_at_install})
