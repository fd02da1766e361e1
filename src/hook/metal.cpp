// SPDX-License-Identifier: Apache-2.0
//
// The one C++ file of the hook: it calls TT-Metal's functions with the types they
// have, and catches what they throw. The classes of TT-Metal stay opaque; only
// containers of the standard library and two plain structs are looked into.
//
// TT-Metal logs what it throws. So nothing is asked that it is known to refuse, such
// as the banks of system memory; the catches are for what is not known.
//
#include "hook/metal.h"

#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <typeinfo>
#include <unordered_map>
#include <unordered_set>
#include <unwind.h>
#include <vector>

#include "stack/stack.h"

namespace {

// Two plain structs of TT-Metal that arrive by value or in vectors.
struct xy {
    std::size_t x, y;
};
struct core_range {
    xy start, end;
};
struct bank_statistics {
    std::uint64_t allocatable, allocated, free, largest_free;
};
struct coordinate_span {
    const std::uint32_t *data;
    std::size_t count;
};
struct opaque;

constexpr std::uint8_t KNOWN_REGIONS[] = {TTMEM_DRAM, TTMEM_L1, TTMEM_L1_SMALL, TTMEM_TRACE};
constexpr std::uint32_t CORE_TYPES = 3; // Tensix, active ethernet, idle ethernet
constexpr std::size_t CORE_MAX = 255;

template <typename Signature> Signature *function(const ttm_runtime *runtime, ttm_ask which)
{
    return reinterpret_cast<Signature *>(runtime->asked[which]);
}

// Runs a question; nothing that is thrown gets out.
template <typename Question> bool ask(Question question) noexcept
{
    try {
        return question();
    } catch (...) {
        return false;
    }
}

bool has(const ttm_runtime *runtime, std::initializer_list<ttm_ask> functions)
{
    for (const ttm_ask which : functions) {
        if (!runtime->asked[which])
            return false;
    }
    return true;
}

// An object with a vtable begins with the address of its third word.
bool is_a(const ttm_runtime *runtime, const void *object, ttm_ask vtable)
{
    const void *table = nullptr;

    if (!object || !runtime->asked[vtable])
        return false;
    std::memcpy(&table, object, sizeof(table));
    return table == static_cast<const char *>(runtime->asked[vtable]) + 2 * sizeof(void *);
}

using core_addresses = std::unordered_map<std::uint64_t, std::uint64_t>;

// Buckets, how many, the first entry, how many entries, and the policy's own: see TTM_CORE_MAP_COUNT.
static_assert(sizeof(core_addresses) == 56, "libstdc++'s");

[[gnu::hot]] bool buffer_read(const ttm_runtime *runtime, const void *buffer, bool has_place,
                              ttm_buffer_facts *ret)
{
    using number = std::uint64_t(const void *);

    return ask([&] {
        ttm_buffer_facts facts{};
        facts.region = static_cast<std::uint8_t>(
            function<int(const void *)>(runtime, TTM_ASK_BUFFER_TYPE)(buffer));
        facts.id = function<number>(runtime, TTM_ASK_BUFFER_UNIQUE_ID)(buffer);
        facts.bytes = function<number>(runtime, TTM_ASK_BUFFER_SIZE)(buffer);
        if (runtime->asked[TTM_ASK_BUFFER_LAYOUT] && runtime->asked[TTM_ASK_BUFFER_PAGE_SIZE] &&
            function<int(const void *)>(runtime, TTM_ASK_BUFFER_LAYOUT)(buffer) ==
                TTM_LAYOUT_INTERLEAVED)
            facts.page_bytes = function<number>(runtime, TTM_ASK_BUFFER_PAGE_SIZE)(buffer);
        if (has_place)
            facts.address = function<number>(runtime, TTM_ASK_BUFFER_ADDRESS)(buffer);
        // Empty, but for those that have a place of their own in each core, and in no other.
        if (facts.region == TTMEM_L1 && runtime->asked[TTM_ASK_BUFFER_CORE_ADDRESSES]) {
            const core_addresses &places = function<const core_addresses &(const void *)>(
                runtime, TTM_ASK_BUFFER_CORE_ADDRESSES)(buffer);
            facts.core_map = &places;
            facts.banks = static_cast<std::uint32_t>(places.size());
        }
        *ret = facts;
        return true;
    });
}

bool buffer_bank_bytes(const ttm_runtime *runtime, const void *buffer, std::uint64_t *ret)
{
    return ask([&] {
        *ret = function<std::uint64_t(const void *)>(runtime, TTM_ASK_BUFFER_BANK_SIZE)(buffer);
        return true;
    });
}

bool buffer_device(const ttm_runtime *runtime, const void *buffer, const void **ret)
{
    return ask([&] {
        *ret = function<const void *(const void *)>(runtime, TTM_ASK_BUFFER_DEVICE)(buffer);
        return *ret != nullptr;
    });
}

[[gnu::hot]] bool buffer_key(const ttm_runtime *runtime, const void *buffer, std::uint64_t *ret_id,
                             std::uint8_t *ret_region)
{
    return ask([&] {
        const int type = function<int(const void *)>(runtime, TTM_ASK_BUFFER_TYPE)(buffer);
        *ret_id = function<std::uint64_t(const void *)>(runtime, TTM_ASK_BUFFER_UNIQUE_ID)(buffer);
        *ret_region = static_cast<std::uint8_t>(type);
        return true;
    });
}

bool each_buffer(const ttm_runtime *runtime, const void *allocator, ttm_buffer_visitor visit,
                 void *context)
{
    using live_set = std::unordered_set<void *>;

    return ask([&] {
        const live_set buffers =
            function<live_set(const void *)>(runtime, TTM_ASK_LIVE_BUFFERS)(allocator);
        for (const void *buffer : buffers)
            visit(buffer, context);
        return true;
    });
}

bool banks(const ttm_runtime *runtime, const void *allocator, std::uint8_t region,
           std::uint32_t *ret_count, std::uint64_t *ret_bytes)
{
    if (region == TTMEM_SYSTEM_MEMORY)
        return false;
    return ask([&] {
        const auto type = static_cast<int>(region);
        const std::uint32_t count = function<std::uint32_t(const void *, const int &)>(
            runtime, TTM_ASK_BANK_COUNT)(allocator, type);
        const std::uint64_t bytes = function<std::uint64_t(const void *, const int &)>(
            runtime, TTM_ASK_BANK_SIZE)(allocator, type);
        *ret_count = count;
        *ret_bytes = bytes;
        return true;
    });
}

bool room(const ttm_runtime *runtime, const void *allocator, std::uint8_t region,
          std::uint64_t *ret_free, std::uint64_t *ret_largest)
{
    if (!has(runtime, {TTM_ASK_STATISTICS}) || region == TTMEM_SYSTEM_MEMORY)
        return false;
    return ask([&] {
        const auto type = static_cast<int>(region);
        const bank_statistics now = function<bank_statistics(const void *, const int &)>(
            runtime, TTM_ASK_STATISTICS)(allocator, type);
        *ret_free = now.free;
        *ret_largest = now.largest_free;
        return true;
    });
}

bool alignment(const ttm_runtime *runtime, const void *allocator, std::uint32_t *ret)
{
    if (!has(runtime, {TTM_ASK_ALIGNMENT}))
        return false;
    return ask([&] {
        const auto bytes = function<std::uint32_t(const void *, int)>(runtime, TTM_ASK_ALIGNMENT)(
            allocator, TTMEM_DRAM);
        if (bytes == 0)
            return false;
        *ret = bytes;
        return true;
    });
}

bool l1_base(const ttm_runtime *runtime, const void *allocator, std::uint64_t *ret)
{
    if (!has(runtime, {TTM_ASK_BASE_ADDRESS}))
        return false;
    return ask([&] {
        const int l1 = 0; // HalMemType::L1
        *ret = function<std::uint64_t(const void *, const int &)>(runtime, TTM_ASK_BASE_ADDRESS)(
            allocator, l1);
        return true;
    });
}

bool allocator_of(const ttm_runtime *runtime, const void *device, const void **ret)
{
    ttm_ask which = TTM_ASK_COUNT;

    if (is_a(runtime, device, TTM_ASK_MESH_VTABLE))
        which = TTM_ASK_MESH_ALLOCATOR;
    else if (is_a(runtime, device, TTM_ASK_DEVICE_VTABLE))
        which = TTM_ASK_DEVICE_ALLOCATOR;
    if (which == TTM_ASK_COUNT || !has(runtime, {which}))
        return false;
    return ask([&] {
        // A reference to a smart pointer, whose first word is the pointer.
        const void *const *held =
            function<const void *const *(const void *)>(runtime, which)(device);
        if (!held || !*held)
            return false;
        *ret = *held;
        return true;
    });
}

// Submeshes of submeshes too; a mesh has few, and they go no deeper than the shape of it.
void visit_meshes(const ttm_runtime *runtime, const void *mesh, ttm_mesh_visitor visit,
                  void *context)
{
    using meshes = std::vector<std::shared_ptr<void>>;

    visit(mesh, context);
    for (const auto &part : function<meshes(const void *)>(runtime, TTM_ASK_SUBMESHES)(mesh)) {
        if (part)
            visit_meshes(runtime, part.get(), visit, context);
    }
}

bool each_mesh(const ttm_runtime *runtime, ttm_mesh_visitor visit, void *context)
{
    if (!has(runtime, {TTM_ASK_CONTEXT_EXISTS, TTM_ASK_CHIP_COUNT, TTM_ASK_ACTIVE_DEVICE,
                       TTM_ASK_DEVICE_MESH, TTM_ASK_SUBMESHES}))
        return false;
    return ask([&] {
        // Asking for devices where no context is there would make one.
        if (!function<bool(int)>(runtime, TTM_ASK_CONTEXT_EXISTS)(0))
            return true;
        const std::size_t count = function<std::size_t()>(runtime, TTM_ASK_CHIP_COUNT)();
        for (std::size_t chip = 0; chip < count; chip++) {
            void *device =
                function<void *(int)>(runtime, TTM_ASK_ACTIVE_DEVICE)(static_cast<int>(chip));
            if (!is_a(runtime, device, TTM_ASK_DEVICE_VTABLE))
                continue;
            const auto mesh =
                function<std::shared_ptr<void>(void *)>(runtime, TTM_ASK_DEVICE_MESH)(device);
            if (mesh)
                visit_meshes(runtime, mesh.get(), visit, context);
        }
        return true;
    });
}

bool list_chips(const ttm_runtime *runtime, const void *mesh, ttm_ask devices_of, ttm_ask ids_of,
                ttm_chips *ret)
{
    if (!has(runtime, {devices_of, ids_of}))
        return false;
    return ask([&] {
        const auto devices = function<std::vector<void *>(const void *)>(runtime, devices_of)(mesh);
        const auto ids = function<std::vector<int>(const void *)>(runtime, ids_of)(mesh);
        if (devices.size() != ids.size())
            return false;
        ret->count = 0;
        for (std::size_t i = 0; i < ids.size() && ret->count < TTM_CHIPS_MAX; i++) {
            if (ids[i] < 0 || ids[i] > UINT16_MAX)
                continue;
            ret->ids[ret->count] = static_cast<std::uint16_t>(ids[i]);
            ret->devices[ret->count++] = devices[i];
        }
        return ret->count > 0;
    });
}

bool chips_of(const ttm_runtime *runtime, const void *device, ttm_chips *ret)
{
    return is_a(runtime, device, TTM_ASK_MESH_VTABLE) &&
           list_chips(runtime, device, TTM_ASK_MESH_DEVICES, TTM_ASK_MESH_DEVICE_IDS, ret);
}

bool chips_of_mesh_impl(const ttm_runtime *runtime, const void *impl, ttm_chips *ret)
{
    return list_chips(runtime, impl, TTM_ASK_MESH_IMPL_DEVICES, TTM_ASK_MESH_IMPL_DEVICE_IDS, ret);
}

void take_chip(const ttm_chips *all, const void *device, ttm_chips *ret)
{
    for (std::uint32_t i = 0; i < all->count && ret->count < TTM_CHIPS_MAX; i++) {
        if (all->devices[i] != device)
            continue;
        ret->ids[ret->count] = all->ids[i];
        ret->devices[ret->count++] = device;
        return;
    }
}

bool chips_within(const ttm_runtime *runtime, const void *mesh, const ttm_mesh_range *range,
                  const ttm_chips *all, ttm_chips *ret)
{
    if (!has(runtime, {TTM_ASK_MESH_DEVICE_AT}) || !is_a(runtime, mesh, TTM_ASK_MESH_VTABLE))
        return false;
    return ask([&] {
        auto *device_at = function<const void *(const void *, std::size_t, std::size_t)>(
            runtime, TTM_ASK_MESH_DEVICE_AT);
        ret->count = 0;
        for (std::size_t row = range->first_row; row <= range->last_row; row++) {
            for (std::size_t column = range->first_column; column <= range->last_column; column++)
                take_chip(all, device_at(mesh, row, column), ret);
        }
        return ret->count > 0;
    });
}

// The serial number of the chip and the name of its board, from the cluster descriptor.
void describe_board(const ttm_runtime *runtime, ttmem_device *ret)
{
    if (!has(runtime, {TTM_ASK_CONTEXT_EXISTS, TTM_ASK_CONTEXT, TTM_ASK_CLUSTER,
                       TTM_ASK_CLUSTER_DESCRIPTOR, TTM_ASK_CHIP_UNIQUE_IDS}))
        return;
    const int context_id = 0;
    // Asking for a context that is not there would make one.
    if (!function<bool(int)>(runtime, TTM_ASK_CONTEXT_EXISTS)(context_id))
        return;
    void *context = function<void *(int)>(runtime, TTM_ASK_CONTEXT)(context_id);
    const void *cluster = function<const void *(void *)>(runtime, TTM_ASK_CLUSTER)(context);
    const void *descriptor =
        function<const void *(const void *)>(runtime, TTM_ASK_CLUSTER_DESCRIPTOR)(cluster);
    const auto &ids = function<const std::unordered_map<int, std::uint64_t> &(const void *)>(
        runtime, TTM_ASK_CHIP_UNIQUE_IDS)(descriptor);
    const auto found = ids.find(ret->id);
    if (found != ids.end())
        ret->asic_id = found->second;
    if (!has(runtime, {TTM_ASK_BOARD_TYPE, TTM_ASK_BOARD_NAME}))
        return;
    const int type =
        function<int(const void *, int)>(runtime, TTM_ASK_BOARD_TYPE)(descriptor, ret->id);
    const auto name = function<std::string(int)>(runtime, TTM_ASK_BOARD_NAME)(type);
    std::snprintf(ret->board, sizeof(ret->board), "%s", name.c_str());
}

bool chip_describe(const ttm_runtime *runtime, const void *device, ttmem_device *ret)
{
    const void *allocator = nullptr;

    if (!is_a(runtime, device, TTM_ASK_DEVICE_VTABLE) || !allocator_of(runtime, device, &allocator))
        return false;
    for (const std::uint8_t region : KNOWN_REGIONS)
        banks(runtime, allocator, region, &ret->bank_count[region], &ret->bank_bytes[region]);
    ask([&] {
        if (has(runtime, {TTM_ASK_DEVICE_ARCH}))
            ret->arch = static_cast<std::uint8_t>(
                function<int(const void *)>(runtime, TTM_ASK_DEVICE_ARCH)(device));
        if (has(runtime, {TTM_ASK_DEVICE_GRID})) {
            const xy grid = function<xy(const void *)>(runtime, TTM_ASK_DEVICE_GRID)(device);
            ret->core_count = static_cast<std::uint32_t>(grid.x * grid.y);
        }
        return true;
    });
    ask([&] {
        describe_board(runtime, ret);
        return true;
    });
    return true;
}

bool program_id(const ttm_runtime *runtime, const void *program, std::uint64_t *ret)
{
    if (!has(runtime, {TTM_ASK_PROGRAM_ID}))
        return false;
    return ask([&] {
        *ret = function<std::uint64_t(const void *)>(runtime, TTM_ASK_PROGRAM_ID)(program);
        return true;
    });
}

bool mesh_range(const ttm_runtime *runtime, const void *range, ttm_mesh_range *ret)
{
    if (!has(runtime, {TTM_ASK_RANGE_START, TTM_ASK_RANGE_END, TTM_ASK_COORDINATES}))
        return false;
    return ask([&] {
        using part = const void *(const void *);
        const void *first = function<part>(runtime, TTM_ASK_RANGE_START)(range);
        const void *last = function<part>(runtime, TTM_ASK_RANGE_END)(range);
        auto *coordinates = function<coordinate_span(const void *)>(runtime, TTM_ASK_COORDINATES);
        const coordinate_span from = coordinates(first);
        const coordinate_span to = coordinates(last);
        // A range that wraps around the edge of the mesh has its ends the other way round.
        if (from.count != 2 || to.count != 2 || from.data[0] > to.data[0] ||
            from.data[1] > to.data[1])
            return false;
        *ret = {from.data[0], from.data[1], to.data[0], to.data[1]};
        return true;
    });
}

void copy_ranges(const std::vector<core_range> &ranges, ttm_core_set *ret)
{
    ret->count = 0;
    for (const core_range &range : ranges) {
        if (ret->count == TTM_RANGES_MAX || range.end.x > CORE_MAX || range.end.y > CORE_MAX)
            return;
        ret->ranges[ret->count++] = {
            static_cast<std::uint8_t>(range.start.x), static_cast<std::uint8_t>(range.start.y),
            static_cast<std::uint8_t>(range.end.x), static_cast<std::uint8_t>(range.end.y)};
    }
}

bool core_set(const ttm_runtime *runtime, const void *ranges, ttm_core_set *ret)
{
    if (!has(runtime, {TTM_ASK_CORE_RANGES}))
        return false;
    return ask([&] {
        copy_ranges(function<const std::vector<core_range> &(const void *)>(
                        runtime, TTM_ASK_CORE_RANGES)(ranges),
                    ret);
        return true;
    });
}

// Calls 'visit' with each kernel of the program, in the order in which TT-Metal goes through them.
template <typename Visitor>
void walk_kernels(const ttm_runtime *runtime, const void *program, Visitor visit)
{
    using kernel_map = std::unordered_map<std::uint32_t, std::shared_ptr<void>>;

    for (std::uint32_t type = 0; type < CORE_TYPES; type++) {
        auto &kernels = function<kernel_map &(const void *, std::uint32_t)>(
            runtime, TTM_ASK_PROGRAM_KERNELS)(program, type);
        for (const auto &entry : kernels)
            visit(entry.second.get());
    }
}

void read_kernel_cores(const ttm_runtime *runtime, const void *kernel, ttm_core_set *ret)
{
    copy_ranges(function<std::vector<core_range>(const void *)>(runtime,
                                                                TTM_ASK_KERNEL_CORE_RANGES)(kernel),
                ret);
}

bool begins_with(const std::string &text, const char *prefix)
{
    return text.compare(0, std::strlen(prefix), prefix) == 0;
}

// The names are those of the runtime's own kernels; everything else is the user's or an operation's.
std::uint8_t kind_of(const std::string &name)
{
    if (begins_with(name, "fabric_") || begins_with(name, "tt_fabric_"))
        return TTMEM_KERNEL_FABRIC;
    if (begins_with(name, "cq_"))
        return TTMEM_KERNEL_DISPATCH;
    return TTMEM_KERNEL_APPLICATION;
}

bool each_kernel(const ttm_runtime *runtime, const void *program, const void *device,
                 std::uint64_t build_key, ttm_kernel_visitor visit, void *context)
{
    using binaries = const std::vector<const void *> &;

    if (!has(runtime, {TTM_ASK_PROGRAM_KERNELS, TTM_ASK_KERNEL_NAME, TTM_ASK_KERNEL_BINARIES,
                       TTM_ASK_KERNEL_PACKED_SIZE, TTM_ASK_KERNEL_CORE_RANGES}))
        return false;
    return ask([&] {
        const auto facts = std::make_unique<ttm_kernel_facts>(); // large for a foreign stack
        walk_kernels(runtime, program, [&](const void *kernel) {
            const std::size_t count = function<binaries(const void *, std::uint64_t)>(
                                          runtime, TTM_ASK_KERNEL_BINARIES)(kernel, build_key)
                                          .size();
            facts->bytes = 0;
            for (std::size_t i = 0; i < count; i++)
                facts->bytes += function<std::uint32_t(const void *, const void *, int)>(
                    runtime, TTM_ASK_KERNEL_PACKED_SIZE)(kernel, device, static_cast<int>(i));
            facts->kind =
                kind_of(function<std::string(const void *)>(runtime, TTM_ASK_KERNEL_NAME)(kernel));
            read_kernel_cores(runtime, kernel, &facts->cores);
            visit(facts.get(), context);
        });
        return true;
    });
}

bool each_scratchpad(const ttm_runtime *runtime, const void *program, ttm_scratchpad_visitor visit,
                     void *context)
{
    // name, size, word of the arguments, description
    using callback =
        std::function<void(const std::string &, std::uint32_t, std::uint32_t, const opaque &)>;

    if (!has(runtime,
             {TTM_ASK_PROGRAM_KERNELS, TTM_ASK_KERNEL_SCRATCHPADS, TTM_ASK_KERNEL_CORE_RANGES}))
        return false;
    return ask([&] {
        const auto cores = std::make_unique<ttm_core_set>();
        walk_kernels(runtime, program, [&](const void *kernel) {
            read_kernel_cores(runtime, kernel, cores.get());
            const callback take = [&](const std::string &, std::uint32_t bytes, std::uint32_t,
                                      const opaque &) { visit(bytes, cores.get(), context); };
            function<void(const void *, const callback &)>(runtime, TTM_ASK_KERNEL_SCRATCHPADS)(
                kernel, take);
        });
        return true;
    });
}

// Methods that return nothing leave some number in the register of the result; the caller
// does not look at it.
std::uint64_t guarded(const ttm_runtime *runtime, void *self, void *argument, ttm_method method,
                      ttm_handler failed)
{
    try {
        return method(self, argument);
    } catch (...) {
        failed(runtime, self, argument);
        throw;
    }
}

constexpr int RBP = 6; // as DWARF counts

void unwound_frame(_Unwind_Context *context, ttm_registers *ret)
{
    ret->ip = _Unwind_GetIP(context);
    ret->sp = _Unwind_GetCFA(context); // of what it has called: its own stack pointer there
    ret->bp = _Unwind_GetGR(context, RBP);
}

// Deeper ones are not looked at: Python's own recursion is bounded far below.
constexpr unsigned FRAMES_MAX = 4096;

// What a walk looks for, a frame by where it goes on or by what it is. The end of a frame is known
// when its caller is come to.
struct frame_search {
    std::uintptr_t address; // 0: 'wanted' is looked for
    const ttm_frame *wanted;
    ttm_frame last;
    bool is_candidate;
    bool is_found;
    unsigned left;
};

_Unwind_Reason_Code look_at_frame(_Unwind_Context *context, void *argument)
{
    auto *search = static_cast<frame_search *>(argument);

    search->last.end = _Unwind_GetCFA(context); // of what it has called
    search->is_found =
        search->is_candidate && (search->address != 0 || search->last.end == search->wanted->end);
    if (search->is_found || search->left-- == 0)
        return _URC_END_OF_STACK;
    const std::uintptr_t function = _Unwind_GetRegionStart(context);
    search->is_candidate = search->address != 0 ? _Unwind_GetIP(context) == search->address
                                                : function == search->wanted->function;
    search->last.function = function;
    return _URC_NO_REASON;
}

bool frame_of(const void *address, ttm_frame *ret)
{
    frame_search search = {};

    search.address = reinterpret_cast<std::uintptr_t>(address);
    search.left = FRAMES_MAX;
    (void)_Unwind_Backtrace(look_at_frame, &search);
    *ret = search.last;
    return search.is_found && ret->function != 0;
}

bool has_frame(const ttm_frame *frame)
{
    frame_search search = {};

    search.wanted = frame;
    search.left = FRAMES_MAX;
    (void)_Unwind_Backtrace(look_at_frame, &search);
    return search.is_found;
}

// "GNUCC++" and 0: thrown by libstdc++, and not rethrown from a std::exception_ptr.
constexpr std::uint64_t GNU_EXCEPTION = 0x474e5543432b2b00;

// Its type is the first word of what the C++ ABI keeps before the exception, ten words.
constexpr std::size_t TYPE_BEFORE = 10 * sizeof(void *);

// TT-Metal writes "TT_FATAL @ FILE:LINE: CONDITION", "info:", what it means, "backtrace:", the trace.
std::string one_line(const std::string &text)
{
    static const std::string info = "info:\n";
    const std::size_t at = text.find(info);
    const std::size_t begin = at == std::string::npos ? 0 : at + info.size();

    std::string line = text.substr(begin, text.find('\n', begin) - begin);
    if (!line.empty() && line.back() == '.')
        line.pop_back();
    return line;
}

bool exception_reason(const _Unwind_Exception *exception, char *ret, std::size_t size)
{
    if (exception->exception_class != GNU_EXCEPTION)
        return false;
    return ask([&] {
        std::uintptr_t word = 0;
        const char *at = reinterpret_cast<const char *>(exception);
        std::memcpy(&word, at - TYPE_BEFORE, sizeof(word));
        // NOLINTNEXTLINE(performance-no-int-to-ptr): the ABI keeps a pointer there
        const auto *type = reinterpret_cast<const std::type_info *>(word);
        void *object = const_cast<_Unwind_Exception *>(exception) + 1;
        if (!typeid(std::exception).__do_catch(type, &object, 1))
            return false;
        const std::string line = one_line(static_cast<const std::exception *>(object)->what());
        std::snprintf(ret, size, "%s", line.c_str());
        return !line.empty();
    });
}

} // namespace

extern "C" __attribute__((visibility("default"))) const ttm_metal ttm_metal_table = {
    buffer_read,
    buffer_bank_bytes,
    buffer_device,
    buffer_key,
    each_buffer,
    banks,
    room,
    alignment,
    l1_base,
    allocator_of,
    each_mesh,
    chips_of,
    chips_of_mesh_impl,
    chips_within,
    chip_describe,
    program_id,
    mesh_range,
    core_set,
    each_kernel,
    each_scratchpad,
    guarded,
    unwound_frame,
    frame_of,
    has_frame,
    exception_reason,
};
