# What `cmake --install` places beside the binaries. Presets are looked up in ../share/orrery/scenarios as
# seen from the binary, so a prefix can be moved as a whole.
install(DIRECTORY scenarios/ DESTINATION ${CMAKE_INSTALL_DATADIR}/orrery/scenarios
  FILES_MATCHING PATTERN "*.json")
# JSON Schemas, by which editors complete scenarios and presets.
if(TARGET orrery AND NOT CMAKE_CROSSCOMPILING)
  set(schemas)
  foreach(kind scenario model accelerator cluster framework measurement)
    set(schema ${CMAKE_BINARY_DIR}/schemas/${kind}.schema.json)
    add_custom_command(OUTPUT ${schema} COMMAND orrery help --schema ${kind} --output ${schema} DEPENDS orrery)
    list(APPEND schemas ${schema})
  endforeach()
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/schemas)
  add_custom_target(schemas ALL DEPENDS ${schemas})
  install(FILES ${schemas} DESTINATION ${CMAKE_INSTALL_DATADIR}/orrery/schemas)
endif()
install(DIRECTORY plots/ DESTINATION ${CMAKE_INSTALL_DATADIR}/orrery/plots FILES_MATCHING PATTERN "*.gp")
install(FILES LICENSE NOTICE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES docs/orrery.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 OPTIONAL)
install(FILES completions/orrery.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
  RENAME orrery OPTIONAL)
install(FILES completions/_orrery DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions OPTIONAL)
install(FILES completions/orrery.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d OPTIONAL)
