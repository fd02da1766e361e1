// SPDX-License-Identifier: Apache-2.0
//
// A libtt_metal.so of our own: classes and functions by TT-Metal's names that do no
// more than keep books. The hook finds, hears and asks it as it does the real one,
// here in programs that sanitizers can watch, and in cases that mock devices do not
// have: dispatch kernels, a library that is too old, two libraries in one process.
//
// FAKE_OLD leaves out what releases before 0.79 do not have.
//
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace tt {

enum class ARCH { WORMHOLE_B0 = 2 };

struct xy_pair {
    std::size_t x, y;
};

namespace tt_metal {

enum class BufferType { DRAM, L1, SYSTEM_MEMORY, L1_SMALL, TRACE };
enum class HalMemType : std::uint8_t { L1, DRAM };

constexpr std::uint32_t BANKS[] = {12, 64, 0, 64, 12};
constexpr unsigned FREES_PER_FAILURE = 64;
constexpr std::uint64_t BANK_BYTES[] = {1 << 30, 1 << 20, 0, 1 << 15, 1 << 20};
constexpr std::uint64_t GRANULE = 32;

// Which library made an object: a call of one that reaches the other's function ends the host.
class Owned {
  protected:
    void must_be_ours() const
    {
        if (made_by_ != &ours)
            std::abort();
    }

  private:
    static const char ours;
    const void *made_by_ = &ours;
};

const char Owned::ours = 0;

struct CoreRange {
    xy_pair start, end;
};

class CoreRangeSet {
  public:
    explicit CoreRangeSet(std::vector<CoreRange> ranges) : ranges_(std::move(ranges))
    {
    }
    const std::vector<CoreRange> &ranges() const;

  private:
    std::vector<CoreRange> ranges_;
};

const std::vector<CoreRange> &CoreRangeSet::ranges() const
{
    return ranges_;
}

class IDevice {
  public:
    virtual ~IDevice() = default;
};

class AllocatorImpl;
class Allocator;

class Buffer {
  public:
    std::uint64_t address() const;
    std::uint64_t size() const;
    BufferType buffer_type() const;
    std::uint64_t aligned_size_per_bank() const;
    Allocator *allocator() const;
#ifndef FAKE_OLD
    IDevice *device() const;
    std::size_t unique_id() const;
#endif

    std::uint64_t address_ = 0;
    std::uint64_t size_ = 0;
    BufferType type_ = BufferType::DRAM;
    IDevice *device_ = nullptr;
    std::size_t id_ = 0;
    AllocatorImpl *impl_ = nullptr;
};

struct Statistics {
    std::uint64_t allocatable, allocated, free, largest_free;
};

class AllocatorImpl : Owned {
  public:
    ~AllocatorImpl();
    std::uint64_t allocate_buffer(Buffer *buffer);
    void deallocate_buffer(Buffer *buffer); // Now and then it throws when it has done so.
    void deallocate_buffers();
    std::uint32_t get_num_banks(const BufferType &type) const;
    std::uint64_t get_bank_size(const BufferType &type) const;
    std::uint32_t get_alignment(BufferType type) const;
    std::uint64_t get_base_allocator_addr(const HalMemType &memory) const;
    Statistics get_statistics(const BufferType &type) const;
    std::unordered_set<Buffer *> get_allocated_buffers() const;

  private:
    std::uint64_t taken(BufferType type) const;

    mutable std::mutex lock_;
    std::unordered_set<Buffer *> buffers_;
    std::uint64_t next_address_ = 1 << 20;
    unsigned frees_ = 0;
};

std::uint64_t Buffer::address() const
{
    return address_;
}
std::uint64_t Buffer::size() const
{
    return size_;
}
BufferType Buffer::buffer_type() const
{
    return type_;
}
Allocator *Buffer::allocator() const
{
    return reinterpret_cast<Allocator *>(impl_);
}
#ifndef FAKE_OLD
IDevice *Buffer::device() const
{
    return device_;
}
std::size_t Buffer::unique_id() const
{
    return id_;
}
#endif

std::uint64_t Buffer::aligned_size_per_bank() const
{
    const std::uint64_t banks = BANKS[static_cast<int>(type_)];

    if (banks == 0)
        throw std::runtime_error("Unsupported buffer type!");
    return ((size_ + banks - 1) / banks + 15) / 16 * 16;
}

std::uint64_t AllocatorImpl::taken(BufferType type) const
{
    std::uint64_t sum = 0;

    for (const Buffer *buffer : buffers_) {
        if (buffer->type_ == type)
            sum += (buffer->aligned_size_per_bank() + GRANULE - 1) / GRANULE * GRANULE;
    }
    return sum;
}

AllocatorImpl::~AllocatorImpl() = default;

std::uint64_t AllocatorImpl::allocate_buffer(Buffer *buffer)
{
    must_be_ours();
    const std::lock_guard guard(lock_);

    if (buffer->type_ != BufferType::SYSTEM_MEMORY &&
        taken(buffer->type_) + buffer->aligned_size_per_bank() >
            BANK_BYTES[static_cast<int>(buffer->type_)])
        throw std::runtime_error("Out of Memory: Not enough space to allocate");
    buffers_.insert(buffer);
    return next_address_ += 64;
}

void AllocatorImpl::deallocate_buffer(Buffer *buffer)
{
    const std::lock_guard guard(lock_);

    buffers_.erase(buffer);
    if (++frees_ % FREES_PER_FAILURE == 0)
        throw std::runtime_error("a buffer that is still in use");
}

void AllocatorImpl::deallocate_buffers()
{
    const std::lock_guard guard(lock_);

    buffers_.clear();
}

std::uint32_t AllocatorImpl::get_num_banks(const BufferType &type) const
{
    if (type == BufferType::SYSTEM_MEMORY)
        throw std::runtime_error("Unsupported buffer type!");
    return BANKS[static_cast<int>(type)];
}

std::uint64_t AllocatorImpl::get_bank_size(const BufferType &type) const
{
    return BANK_BYTES[static_cast<int>(type)];
}

std::uint32_t AllocatorImpl::get_alignment(BufferType) const
{
    return GRANULE;
}
std::uint64_t AllocatorImpl::get_base_allocator_addr(const HalMemType &) const
{
    return 100000;
}

Statistics AllocatorImpl::get_statistics(const BufferType &type) const
{
    const std::lock_guard guard(lock_);
    const std::uint64_t all = BANK_BYTES[static_cast<int>(type)], used = taken(type);

    return {all, used, all - used, (all - used) / 2};
}

void (*while_asked)();

std::unordered_set<Buffer *> AllocatorImpl::get_allocated_buffers() const
{
    const std::lock_guard guard(lock_);

    if (while_asked)
        while_asked();
    return buffers_;
}

class GraphTracker {
  public:
    void track_allocate(const Buffer *buffer);
    void track_allocate_cb(const CoreRangeSet &cores, unsigned long address, unsigned long size,
                           bool is_global, const IDevice *device);
};

void GraphTracker::track_allocate(const Buffer *)
{
}
void GraphTracker::track_allocate_cb(const CoreRangeSet &, unsigned long, unsigned long, bool,
                                     const IDevice *)
{
}

namespace distributed {
class MeshDevice;
}

class Device : public IDevice {
  public:
    explicit Device(int id) : id_(id)
    {
    }
    bool close();
    ARCH arch() const;
    xy_pair compute_with_storage_grid_size() const;
    const std::unique_ptr<AllocatorImpl> &allocator_impl() const;
    std::shared_ptr<distributed::MeshDevice> get_mesh_device();

    int id_;
    std::unique_ptr<AllocatorImpl> allocator_ = std::make_unique<AllocatorImpl>();
};

bool does_close_throw;

bool Device::close()
{
    if (does_close_throw)
        throw std::runtime_error("a device that does not answer");
    return true;
}
ARCH Device::arch() const
{
    return ARCH::WORMHOLE_B0;
}
xy_pair Device::compute_with_storage_grid_size() const
{
    return {8, 8};
}
const std::unique_ptr<AllocatorImpl> &Device::allocator_impl() const
{
    return allocator_;
}

class Kernel {
  public:
    Kernel(std::string name, std::uint32_t bytes) : name_(std::move(name)), bytes_(bytes)
    {
    }
    std::string name() const;
    const std::vector<const void *> &binaries(std::uint64_t build_key) const;
    std::uint32_t get_binary_packed_size(IDevice *device, int index) const;
    std::vector<CoreRange> logical_coreranges() const;

  private:
    std::string name_;
    std::uint32_t bytes_;
    std::vector<const void *> binaries_{nullptr};
};

std::string Kernel::name() const
{
    return name_;
}
const std::vector<const void *> &Kernel::binaries(std::uint64_t) const
{
    return binaries_;
}
std::uint32_t Kernel::get_binary_packed_size(IDevice *, int) const
{
    return bytes_;
}
std::vector<CoreRange> Kernel::logical_coreranges() const
{
    return {{{0, 0}, {1, 0}}};
}

class DispatchCoreConfig {};

namespace distributed {

class MeshCoordinate {
  public:
    std::span<const std::uint32_t> coords() const;
    std::uint32_t at_[2] = {0, 0};
};

std::span<const std::uint32_t> MeshCoordinate::coords() const
{
    return at_;
}

class MeshCoordinateRange {
  public:
    const MeshCoordinate &start_coord() const;
    const MeshCoordinate &end_coord() const;
    MeshCoordinate start_, end_;
};

const MeshCoordinate &MeshCoordinateRange::start_coord() const
{
    return start_;
}
const MeshCoordinate &MeshCoordinateRange::end_coord() const
{
    return end_;
}

class MeshDeviceImpl {
  public:
    std::vector<IDevice *> get_devices() const;
    std::vector<int> get_device_ids() const;
    bool close_impl(class MeshDevice *mesh);
    std::vector<std::unique_ptr<Device>> devices_;
    std::unique_ptr<AllocatorImpl> allocator_ = std::make_unique<AllocatorImpl>();
};

std::vector<IDevice *> MeshDeviceImpl::get_devices() const
{
    std::vector<IDevice *> all;

    for (const auto &device : devices_)
        all.push_back(device.get());
    return all;
}

std::vector<int> MeshDeviceImpl::get_device_ids() const
{
    std::vector<int> all;

    for (const auto &device : devices_)
        all.push_back(device->id_);
    return all;
}

bool MeshDeviceImpl::close_impl(MeshDevice *)
{
    allocator_->deallocate_buffers();
    for (const auto &device : devices_)
        device->close();
    return true;
}

class MeshDevice : public IDevice {
  public:
    MeshDevice();
    static std::shared_ptr<MeshDevice> create_unit_mesh(int device_id, std::size_t l1_small_size,
                                                        std::size_t trace_region_size,
                                                        std::size_t num_command_queues,
                                                        const DispatchCoreConfig &config,
                                                        std::span<const std::uint32_t> remap,
                                                        std::size_t worker_l1_size);
    ~MeshDevice() override;
    std::vector<IDevice *> get_devices() const;
    std::vector<int> get_device_ids() const;
    IDevice *get_device(std::size_t row, std::size_t column) const;
    std::vector<std::shared_ptr<MeshDevice>> get_submeshes() const;
    const std::unique_ptr<AllocatorImpl> &allocator_impl() const;
    MeshDeviceImpl impl_;
};

MeshDevice::MeshDevice() = default;
MeshDevice::~MeshDevice() = default;
std::vector<IDevice *> MeshDevice::get_devices() const
{
    return impl_.get_devices();
}
std::vector<int> MeshDevice::get_device_ids() const
{
    return impl_.get_device_ids();
}
std::vector<std::shared_ptr<MeshDevice>> MeshDevice::get_submeshes() const
{
    return {};
}
IDevice *MeshDevice::get_device(std::size_t, std::size_t column) const
{
    return impl_.devices_.at(column).get();
}
const std::unique_ptr<AllocatorImpl> &MeshDevice::allocator_impl() const
{
    return impl_.allocator_;
}

} // namespace distributed

namespace detail {

class ProgramImpl : Owned {
  public:
    ProgramImpl();
    ~ProgramImpl();
    std::uint64_t get_id() const;
    std::unordered_map<std::uint32_t, std::shared_ptr<Kernel>> &get_kernels(std::uint32_t type);
    void allocate_circular_buffers(const IDevice *device);
    void deallocate_circular_buffers();
    void validate_circular_buffer_region(const IDevice *device);

    std::uint64_t id_;
    std::uint64_t cb_bytes_ = 0; // in each of four cores
    std::unordered_map<std::uint32_t, std::shared_ptr<Kernel>> kernels_[3];
};

static std::uint64_t programs_made;

ProgramImpl::ProgramImpl() : id_(programs_made++)
{
}
ProgramImpl::~ProgramImpl()
{
    deallocate_circular_buffers();
}
std::uint64_t ProgramImpl::get_id() const
{
    return id_;
}
std::unordered_map<std::uint32_t, std::shared_ptr<Kernel>> &ProgramImpl::get_kernels(
    std::uint32_t type)
{
    return kernels_[type];
}

void ProgramImpl::allocate_circular_buffers(const IDevice *device)
{
    must_be_ours();
    const auto *mesh = static_cast<const distributed::MeshDevice *>(device);
    const CoreRangeSet cores({{{0, 0}, {1, 0}}, {{0, 1}, {1, 1}}});
    GraphTracker tracker;

    for (const IDevice *chip : mesh->get_devices()) {
        tracker.track_allocate_cb(cores, 100000, cb_bytes_, false, chip);
        tracker.track_allocate_cb(cores, 1 << 20, 4096, true, chip);
    }
}

void ProgramImpl::deallocate_circular_buffers()
{
}
void ProgramImpl::validate_circular_buffer_region(const IDevice *)
{
    throw std::runtime_error("circular buffers clash with L1 buffers");
}

} // namespace detail

class Program {
  public:
    std::shared_ptr<detail::ProgramImpl> impl_ = std::make_shared<detail::ProgramImpl>();
};

class Inspector {
  public:
    static void program_compile_finished(const detail::ProgramImpl *program, const IDevice *device,
                                         std::uint64_t build_key);
    static void mesh_device_initialized(const distributed::MeshDeviceImpl *impl);
};

void Inspector::program_compile_finished(const detail::ProgramImpl *, const IDevice *,
                                         std::uint64_t)
{
}
void Inspector::mesh_device_initialized(const distributed::MeshDeviceImpl *)
{
}

namespace distributed {

class MeshCommandQueue {};

class MeshWorkloadImpl {
  public:
    ~MeshWorkloadImpl();
    void add_program(const MeshCoordinateRange &range, Program &&program);
    std::vector<Program> programs_;
};

MeshWorkloadImpl::~MeshWorkloadImpl() = default;
void MeshWorkloadImpl::add_program(const MeshCoordinateRange &, Program &&program)
{
    programs_.push_back(std::move(program));
}

class MeshWorkload {
  public:
    std::unique_ptr<MeshWorkloadImpl> impl_ = std::make_unique<MeshWorkloadImpl>();
};

void EnqueueMeshWorkload(MeshCommandQueue &queue, MeshWorkload &workload, bool is_blocking);
void EnqueueMeshWorkload(MeshCommandQueue &, MeshWorkload &, bool)
{
}

} // namespace distributed
} // namespace tt_metal
} // namespace tt

using namespace tt::tt_metal;

namespace {

std::shared_ptr<distributed::MeshDevice> mesh;
std::size_t buffers_made;
std::mutex lock;

} // namespace

// How open devices are found by who comes late.
namespace ttsl {
template <typename Number, typename Tag> struct StrongType {
    Number value;
};
} // namespace ttsl

namespace tt {
namespace tt_metal {

struct ContextIdTag;

class MetalContext {
  public:
    static bool instance_exists(ttsl::StrongType<int, ContextIdTag> id);
};
bool MetalContext::instance_exists(ttsl::StrongType<int, ContextIdTag>)
{
    return mesh != nullptr;
}

std::size_t GetNumAvailableDevices();
std::size_t GetNumAvailableDevices()
{
    return mesh->impl_.devices_.size() + 1; // one of them is not open
}

namespace detail {
IDevice *GetActiveDevice(int chip);
IDevice *GetActiveDevice(int chip)
{
    const auto &devices = mesh->impl_.devices_;

    return static_cast<std::size_t>(chip) < devices.size() ? devices[chip].get() : nullptr;
}
} // namespace detail

std::shared_ptr<distributed::MeshDevice> Device::get_mesh_device()
{
    return mesh;
}

} // namespace tt_metal
} // namespace tt

// Comes before a device is opened, and finds none with this set.
static bool has_no_devices;

namespace tt {
namespace tt_metal {

class MetalEnvImpl {
  public:
    void initialize_base_objects();
};
void MetalEnvImpl::initialize_base_objects()
{
    if (has_no_devices)
        throw std::runtime_error("TT_FATAL @ cluster.cpp:129: chips > 0\ninfo:\nNo chips here.\n"
                                 "backtrace:\n --- main");
}

namespace distributed {

// Device 0 is there, and no other. Throws when its arguments are not those of open_by_id().
std::shared_ptr<MeshDevice> MeshDevice::create_unit_mesh(int device_id, std::size_t l1_small_size,
                                                         std::size_t trace_region_size,
                                                         std::size_t num_command_queues,
                                                         const DispatchCoreConfig &,
                                                         std::span<const std::uint32_t> remap,
                                                         std::size_t worker_l1_size)
{
    if (l1_small_size != 1 || trace_region_size != 2 || num_command_queues != 3 ||
        remap.size() != 2 || remap[1] != 5 || worker_l1_size != 6)
        throw std::logic_error("other arguments than those of the caller");
    if (device_id != 0)
        throw std::runtime_error("there is no device " + std::to_string(device_id));
    auto made = std::make_shared<MeshDevice>();
    made->impl_.devices_.push_back(std::make_unique<Device>(0));
    Inspector::mesh_device_initialized(&made->impl_);
    return made;
}

} // namespace distributed
} // namespace tt_metal
} // namespace tt

static void open_by_id(int id)
{
    static const std::uint32_t remap[] = {4, 5};

    MetalEnvImpl().initialize_base_objects();
    mesh = distributed::MeshDevice::create_unit_mesh(id, 1, 2, 3, DispatchCoreConfig(), remap, 6);
}

// What the host calls: each is a thing that a program does with the real library.
extern "C" {

void fake_open(int chips)
{
    mesh = std::make_shared<distributed::MeshDevice>();
    for (int i = 0; i < chips; i++)
        mesh->impl_.devices_.push_back(std::make_unique<Device>(i));
    Inspector::mesh_device_initialized(&mesh->impl_);
}

// Opens a device as ttnn does. Returns whether that threw. Not heard by a caller: it ends the program.
int fake_open_by_id(int id)
{
    try {
        open_by_id(id);
    } catch (const std::runtime_error &) {
        return 1;
    }
    return 0;
}

void fake_open_by_id_or_abort(int id)
{
    open_by_id(id);
}

int fake_lose_devices(int is_lost)
{
    has_no_devices = is_lost != 0;
    return 0;
}

// Chips that cannot be closed: all stays as it is. Returns whether that was thrown as it should be.
bool fake_close_in_vain()
{
    unsigned thrown = 0;

    does_close_throw = true;
    for (const auto &device : mesh->impl_.devices_) {
        try {
            device->close();
        } catch (const std::runtime_error &failure) {
            thrown += std::string(failure.what()) == "a device that does not answer";
        }
    }
    does_close_throw = false;
    return thrown == mesh->impl_.devices_.size();
}

// What is done in the middle of the next questions for what is live, which lock the allocator.
void fake_while_asked(void (*action)())
{
    while_asked = action;
}

void fake_close()
{
    mesh->impl_.close_impl(mesh.get());
    mesh.reset();
}

// NULL when there is no room. A virtual one is placed nowhere.
void *fake_alloc(int type, std::uint64_t bytes, bool is_virtual)
{
    auto buffer = std::make_unique<Buffer>();

    buffer->type_ = static_cast<BufferType>(type);
    buffer->size_ = bytes;
    buffer->device_ = mesh.get();
    buffer->impl_ = mesh->impl_.allocator_.get();
    {
        const std::lock_guard guard(lock);
        buffer->id_ = buffers_made++;
    }
    if (!is_virtual) {
        try {
            buffer->address_ = buffer->impl_->allocate_buffer(buffer.get());
        } catch (const std::runtime_error &) {
            return nullptr;
        }
    }
    GraphTracker().track_allocate(buffer.get());
    return buffer.release();
}

void fake_free(void *pointer)
{
    const std::unique_ptr<Buffer> buffer(static_cast<Buffer *>(pointer));

    if (!mesh || !buffer->address_)
        return;
    try {
        buffer->impl_->deallocate_buffer(buffer.get());
    } catch (const std::runtime_error &failure) {
        if (std::string(failure.what()) != "a buffer that is still in use")
            std::abort();
    }
}

// A workload with one program for each of the first 'chips' chips, each with a kernel by that name.
void *fake_workload(int chips, std::uint64_t cb_bytes, const char *kernel, std::uint32_t bytes)
{
    auto workload = std::make_unique<distributed::MeshWorkload>();

    for (int i = 0; i < chips; i++) {
        Program program;
        detail::ProgramImpl *impl = program.impl_.get();
        distributed::MeshCoordinateRange range;
        range.start_.at_[1] = range.end_.at_[1] = static_cast<std::uint32_t>(i);
        impl->cb_bytes_ = cb_bytes;
        impl->kernels_[0][7] = std::make_shared<Kernel>(kernel, bytes);
        workload->impl_->add_program(range, std::move(program));
        Inspector::program_compile_finished(impl, mesh.get(), 1);
        impl->allocate_circular_buffers(mesh.get());
    }
    return workload.release();
}

void fake_run(void *workload)
{
    distributed::MeshCommandQueue queue;

    distributed::EnqueueMeshWorkload(queue, *static_cast<distributed::MeshWorkload *>(workload),
                                     false);
}

// Returns whether the clash was thrown as it should be.
bool fake_clash(void *workload)
{
    try {
        static_cast<distributed::MeshWorkload *>(workload)
            ->impl_->programs_[0]
            .impl_->validate_circular_buffer_region(mesh.get());
    } catch (const std::runtime_error &failure) {
        return std::string(failure.what()) == "circular buffers clash with L1 buffers";
    }
    return false;
}

void fake_end(void *workload)
{
    delete static_cast<distributed::MeshWorkload *>(workload);
}

} // extern "C"
