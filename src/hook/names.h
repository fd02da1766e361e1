/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names - every function of TT-Metal that the hook has to do with, by its mangled
 * name: those it stands in for, and those it asks. docs/hook.md tells why these.
 */
#ifndef TTM_HOOK_NAMES_H
#define TTM_HOOK_NAMES_H

/* clang-format off */

/*
 * X(label, name): the functions that the hook takes the place of. All are called
 * through the PLT from another file than their own, in 0.79 to 0.81. The first four
 * are those that every operation calls: what is kept of them lies side by side.
 */
#define TTM_INTERPOSED(X) \
    X(ALLOCATE_BUFFER, _ZN2tt8tt_metal13AllocatorImpl15allocate_bufferEPNS0_6BufferE) \
    X(TRACK_ALLOCATE, _ZN2tt8tt_metal12GraphTracker14track_allocateEPKNS0_6BufferE) \
    X(DEALLOCATE_BUFFER, _ZN2tt8tt_metal13AllocatorImpl17deallocate_bufferEPNS0_6BufferE) \
    X(ENQUEUE, _ZN2tt8tt_metal11distributed19EnqueueMeshWorkloadERNS1_16MeshCommandQueueERNS1_12MeshWorkloadEb) \
    X(DEALLOCATE_BUFFERS, _ZN2tt8tt_metal13AllocatorImpl18deallocate_buffersEv) \
    X(ALLOCATOR_END, _ZN2tt8tt_metal13AllocatorImplD2Ev) \
    X(ALLOCATE_CBS, _ZN2tt8tt_metal6detail11ProgramImpl25allocate_circular_buffersEPKNS0_7IDeviceE) \
    X(TRACK_CB, _ZN2tt8tt_metal12GraphTracker17track_allocate_cbERKNS0_12CoreRangeSetEmmbPKNS0_7IDeviceE) \
    X(DEALLOCATE_CBS, _ZN2tt8tt_metal6detail11ProgramImpl27deallocate_circular_buffersEv) \
    X(ALLOCATE_DFBS, _ZN2tt8tt_metal6detail11ProgramImpl25allocate_dataflow_buffersEPKNS0_7IDeviceE) \
    X(MARK_ADDRESS, _ZN2tt8tt_metal6detail11ProgramImpl23CircularBufferAllocator12mark_addressEmmm) \
    X(ALLOCATE_SCRATCHPADS, _ZN2tt8tt_metal6detail11ProgramImpl20allocate_scratchpadsEPKNS0_7IDeviceE) \
    X(VALIDATE_CBS, _ZN2tt8tt_metal6detail11ProgramImpl31validate_circular_buffer_regionEPKNS0_7IDeviceE) \
    X(VALIDATE_DFBS, _ZN2tt8tt_metal6detail11ProgramImpl31validate_dataflow_buffer_regionEPKNS0_7IDeviceE) \
    X(COMPILE_FINISHED, _ZN2tt8tt_metal9Inspector24program_compile_finishedEPKNS0_6detail11ProgramImplEPKNS0_7IDeviceEm) \
    X(PROGRAM_END, _ZN2tt8tt_metal6detail11ProgramImplD1Ev) \
    X(MERGE_RANGE, _ZN2tt8tt_metal11distributed22MeshCoordinateRangeSet5mergeERKNS1_19MeshCoordinateRangeE) \
    X(ADD_PROGRAM, _ZN2tt8tt_metal11distributed16MeshWorkloadImpl11add_programERKNS1_19MeshCoordinateRangeEONS0_7ProgramE) \
    X(WORKLOAD_END, _ZN2tt8tt_metal11distributed16MeshWorkloadImplD1Ev) \
    X(MESH_INITIALIZED, _ZN2tt8tt_metal9Inspector23mesh_device_initializedEPKNS0_11distributed14MeshDeviceImplE) \
    X(DEVICE_CLOSE, _ZN2tt8tt_metal6Device5closeEv) \
    X(MESH_CLOSE, _ZN2tt8tt_metal11distributed14MeshDeviceImpl10close_implEPNS1_10MeshDeviceE) \
    X(FIND_DEVICES, _ZN2tt8tt_metal12MetalEnvImpl23initialize_base_objectsEv) \
    TTM_INTERPOSED_OPENINGS(X)

/*
 * X(label, name): those that open a device. They return an object in memory of the caller's, which C can
 * pass on where that memory is the first argument, as in the ABI of x86-64.
 */
#if defined(__x86_64__)
#define TTM_INTERPOSED_OPENINGS(X) \
    X(CREATE_MESH, _ZN2tt8tt_metal11distributed10MeshDevice6createERKNS1_16MeshDeviceConfigEmmmRKNS0_18DispatchCoreConfigESt4spanIKjLm18446744073709551615EEm) \
    X(CREATE_UNIT_MESH, _ZN2tt8tt_metal11distributed10MeshDevice16create_unit_meshEimmmRKNS0_18DispatchCoreConfigESt4spanIKjLm18446744073709551615EEm) \
    X(CREATE_UNIT_MESHES, _ZN2tt8tt_metal11distributed10MeshDevice18create_unit_meshesERKSt6vectorIiSaIiEEmmmRKNS0_18DispatchCoreConfigESt4spanIKjLm18446744073709551615EEm)
#else
#define TTM_INTERPOSED_OPENINGS(X)
#endif

/* X(label, name, is_required): the functions that the hook calls. */
#define TTM_ASKED(X) \
    X(BUFFER_ADDRESS, _ZNK2tt8tt_metal6Buffer7addressEv, 1) \
    X(BUFFER_SIZE, _ZNK2tt8tt_metal6Buffer4sizeEv, 1) \
    X(BUFFER_TYPE, _ZNK2tt8tt_metal6Buffer11buffer_typeEv, 1) \
    X(BUFFER_DEVICE, _ZNK2tt8tt_metal6Buffer6deviceEv, 1) \
    X(BUFFER_UNIQUE_ID, _ZNK2tt8tt_metal6Buffer9unique_idEv, 1) \
    X(BUFFER_BANK_SIZE, _ZNK2tt8tt_metal6Buffer21aligned_size_per_bankEv, 1) \
    X(BUFFER_PAGE_SIZE, _ZNK2tt8tt_metal6Buffer9page_sizeEv, 0) \
    X(BUFFER_LAYOUT, _ZNK2tt8tt_metal6Buffer13buffer_layoutEv, 0) \
    X(BUFFER_CORE_ADDRESSES, _ZN2tt8tt_metal12experimental19per_core_allocation22get_per_core_addressesERKNS0_6BufferE, 0) \
    X(BUFFER_ALLOCATOR, _ZNK2tt8tt_metal6Buffer9allocatorEv, 1) \
    X(BANK_COUNT, _ZNK2tt8tt_metal13AllocatorImpl13get_num_banksERKNS0_10BufferTypeE, 1) \
    X(BANK_SIZE, _ZNK2tt8tt_metal13AllocatorImpl13get_bank_sizeERKNS0_10BufferTypeE, 1) \
    X(LIVE_BUFFERS, _ZNK2tt8tt_metal13AllocatorImpl21get_allocated_buffersEv, 1) \
    X(STATISTICS, _ZNK2tt8tt_metal13AllocatorImpl14get_statisticsERKNS0_10BufferTypeE, 0) \
    X(ALIGNMENT, _ZNK2tt8tt_metal13AllocatorImpl13get_alignmentENS0_10BufferTypeE, 0) \
    X(BASE_ADDRESS, _ZNK2tt8tt_metal13AllocatorImpl23get_base_allocator_addrERKNS0_10HalMemTypeE, 0) \
    X(MESH_VTABLE, _ZTVN2tt8tt_metal11distributed10MeshDeviceE, 1) \
    X(MESH_DEVICES, _ZNK2tt8tt_metal11distributed10MeshDevice11get_devicesEv, 1) \
    X(MESH_DEVICE_IDS, _ZNK2tt8tt_metal11distributed10MeshDevice14get_device_idsEv, 1) \
    X(MESH_DEVICE_AT, _ZNK2tt8tt_metal11distributed10MeshDevice10get_deviceEmm, 0) \
    X(MESH_ALLOCATOR, _ZNK2tt8tt_metal11distributed10MeshDevice14allocator_implEv, 0) \
    X(MESH_IMPL_DEVICES, _ZNK2tt8tt_metal11distributed14MeshDeviceImpl11get_devicesEv, 0) \
    X(MESH_IMPL_DEVICE_IDS, _ZNK2tt8tt_metal11distributed14MeshDeviceImpl14get_device_idsEv, 0) \
    X(DEVICE_VTABLE, _ZTVN2tt8tt_metal6DeviceE, 0) \
    X(DEVICE_ALLOCATOR, _ZNK2tt8tt_metal6Device14allocator_implEv, 0) \
    X(DEVICE_ARCH, _ZNK2tt8tt_metal6Device4archEv, 0) \
    X(DEVICE_MESH, _ZN2tt8tt_metal6Device15get_mesh_deviceEv, 0) \
    X(DEVICE_GRID, _ZNK2tt8tt_metal6Device30compute_with_storage_grid_sizeEv, 0) \
    X(CHIP_COUNT, _ZN2tt8tt_metal22GetNumAvailableDevicesEv, 0) \
    X(ACTIVE_DEVICE, _ZN2tt8tt_metal6detail15GetActiveDeviceEi, 0) \
    X(SUBMESHES, _ZNK2tt8tt_metal11distributed10MeshDevice13get_submeshesEv, 0) \
    X(CONTEXT_EXISTS, _ZN2tt8tt_metal12MetalContext15instance_existsEN4ttsl10StrongTypeIiNS0_12ContextIdTagEEE, 0) \
    X(CONTEXT, _ZN2tt8tt_metal12MetalContext8instanceEN4ttsl10StrongTypeIiNS0_12ContextIdTagEEE, 0) \
    X(CLUSTER, _ZN2tt8tt_metal12MetalContext11get_clusterEv, 0) \
    X(CLUSTER_DESCRIPTOR, _ZNK2tt7Cluster16get_cluster_descEv, 0) \
    X(CHIP_UNIQUE_IDS, _ZNK2tt3umd17ClusterDescriptor19get_chip_unique_idsEv, 0) \
    X(BOARD_TYPE, _ZNK2tt3umd17ClusterDescriptor14get_board_typeEi, 0) \
    X(BOARD_NAME, _ZN2tt20board_type_to_stringB5cxx11ENS_9BoardTypeE, 0) \
    X(PROGRAM_ID, _ZNK2tt8tt_metal6detail11ProgramImpl6get_idEv, 0) \
    X(PROGRAM_KERNELS, _ZN2tt8tt_metal6detail11ProgramImpl11get_kernelsEj, 0) \
    X(CORE_RANGES, _ZNK2tt8tt_metal12CoreRangeSet6rangesEv, 0) \
    X(KERNEL_NAME, _ZNK2tt8tt_metal6Kernel4nameB5cxx11Ev, 0) \
    X(KERNEL_BINARIES, _ZNK2tt8tt_metal6Kernel8binariesEm, 0) \
    X(KERNEL_PACKED_SIZE, _ZNK2tt8tt_metal6Kernel22get_binary_packed_sizeEPNS0_7IDeviceEi, 0) \
    X(KERNEL_CORE_RANGES, _ZNK2tt8tt_metal6Kernel18logical_corerangesEv, 0) \
    X(KERNEL_SCRATCHPADS, _ZNK2tt8tt_metal6Kernel34process_scratchpad_binding_handlesERKSt8functionIFvRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEjjRKSt8optionalINS0_11LLKMetadataEEEE, 0) \
    X(RANGE_START, _ZNK2tt8tt_metal11distributed19MeshCoordinateRange11start_coordEv, 0) \
    X(RANGE_END, _ZNK2tt8tt_metal11distributed19MeshCoordinateRange9end_coordEv, 0) \
    X(COORDINATES, _ZNK2tt8tt_metal11distributed14MeshCoordinate6coordsEv, 0)

/* clang-format on */

#define TTM_INTERPOSED_LABEL(label, name) TTM_HOOK_##label,
enum ttm_hook_point { TTM_INTERPOSED(TTM_INTERPOSED_LABEL) TTM_HOOK_COUNT };
#undef TTM_INTERPOSED_LABEL

#define TTM_ASKED_LABEL(label, name, is_required) TTM_ASK_##label,
enum ttm_ask { TTM_ASKED(TTM_ASKED_LABEL) TTM_ASK_COUNT };
#undef TTM_ASKED_LABEL

#endif /* TTM_HOOK_NAMES_H */
