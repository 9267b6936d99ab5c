# ab_plugin_build(<target>): what says for which version of the engine a plug-in of devices is; also where it is built
# without the engine.
function(ab_plugin_build target)
  get_filename_component(root ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/.. ABSOLUTE)
  file(STRINGS ${root}/pyproject.toml version REGEX "^version = ")
  string(REGEX REPLACE ".*\"(.*)\".*" "\\1" version "${version}")
  target_compile_definitions(${target} PRIVATE ANABRANCH_VERSION="${version}")
endfunction()
