# anytensor._core: the CPython extension. Included by src/CMakeLists.txt in a scikit-build-core build only.
find_package(Python REQUIRED COMPONENTS Interpreter Development.Module NumPy)
file(GLOB extension_sources CONFIGURE_DEPENDS python/*.c python/backends/*.c)

# Python's docstrings come from the doc blocks of the C headers.
set(op_docs ${PROJECT_BINARY_DIR}/generated/op_docs.h)
file(GLOB op_docs_inputs CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/include/anytensor/*.h ${PROJECT_SOURCE_DIR}/include/anytensor/*.def
  ${CMAKE_CURRENT_SOURCE_DIR}/ops/*.def ${PROJECT_SOURCE_DIR}/tools/opgen
  ${PROJECT_SOURCE_DIR}/tools/opgen*/*.py ${PROJECT_SOURCE_DIR}/tools/opgen*.py)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/generated)
add_custom_command(OUTPUT ${op_docs}
  COMMAND ${Python_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/opgen docs-header ${op_docs}
  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
  DEPENDS ${op_docs_inputs} VERBATIM)

python_add_library(_core MODULE WITH_SOABI ${extension_sources} ${op_docs})
target_include_directories(_core PRIVATE
  ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/python ${PROJECT_BINARY_DIR}/generated)
target_include_directories(_core SYSTEM PRIVATE ${Python_NumPy_INCLUDE_DIRS})
target_compile_definitions(_core PRIVATE
  ATI_BUILDING ANYTENSOR_VERSION="${ANYTENSOR_VERSION}"
  NPY_NO_DEPRECATED_API=NPY_2_0_API_VERSION NPY_TARGET_VERSION=NPY_1_24_API_VERSION)
# CPython's own conventions (void * slots, PyCFunction casts, {NULL} ends of tables) are no faults of ours.
target_compile_options(_core PRIVATE -Wno-cast-function-type -Wno-missing-field-initializers)
# torch throws through the frames of its operators.
set_source_files_properties(python/backends/torch_ops.c PROPERTIES COMPILE_OPTIONS -fexceptions)
# The library's objects are part of the module: its public symbols stay inside (AT_API is empty), and the
# linker may inline across the border, which a call of 0.4 us notices.
target_compile_definitions(anytensor_objects PUBLIC AT_API=)
target_link_libraries(_core PRIVATE anytensor_objects anytensor_flags ${CMAKE_DL_LIBS})
include(CheckIPOSupported)
check_ipo_supported(RESULT ipo OUTPUT ipo_says LANGUAGES C)
if(ipo)
  set_target_properties(anytensor_objects _core PROPERTIES INTERPROCEDURAL_OPTIMIZATION ON)
endif()
install(TARGETS _core LIBRARY DESTINATION anytensor)
