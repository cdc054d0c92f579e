# liborrery: the rooms behind the functions of api/orrery.h, and nothing else seen from outside.
add_library(orrery_shared SHARED api/orrery.c api/orrery_plan.c api/orrery_sweep.c api/orrery_beside.c cli/library.c)
orrery_link(orrery_shared cli ${ORRERY_ROOMS})
set_target_properties(orrery_shared PROPERTIES OUTPUT_NAME orrery PUBLIC_HEADER api/orrery.h
  LINK_DEPENDS ${CMAKE_SOURCE_DIR}/api/orrery.map)
if(NOT APPLE) # whose linker has neither: there ORR_API alone is seen
  target_link_options(orrery_shared PRIVATE -Wl,--version-script=${CMAKE_SOURCE_DIR}/api/orrery.map -Wl,--no-undefined)
endif()
if(SKBUILD) # a wheel: library, program, presets and scripts of plots inside the Python package, and no links
  install(TARGETS orrery_shared LIBRARY DESTINATION orrery COMPONENT python NAMELINK_SKIP
    PUBLIC_HEADER DESTINATION orrery COMPONENT unused)
  install(DIRECTORY scenarios/ DESTINATION orrery/scenarios COMPONENT python FILES_MATCHING PATTERN "*.json")
  install(TARGETS orrery RUNTIME DESTINATION orrery COMPONENT python)
  install(DIRECTORY plots/ DESTINATION orrery/plots COMPONENT python FILES_MATCHING PATTERN "*.gp")
else()
  set_target_properties(orrery_shared PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0)
  install(TARGETS orrery_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    PUBLIC_HEADER DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  configure_file(cmake/orrery.pc.in orrery.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/orrery.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
