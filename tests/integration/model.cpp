// SPDX-License-Identifier: Apache-2.0
// One helper, make(), for the weights of a model, for what a step needs and for what it leaks.
#include <cstdint>
#include <ctime>
#include <ttmem/ttmem.h>
#include <vector>

static std::uint64_t next_id = 1;

static std::uint64_t make(std::uint64_t bytes)
{
    ttmem_allocation allocation{};
    allocation.id = next_id++;
    allocation.address = allocation.id * 65536;
    allocation.bytes = bytes;
    allocation.region = TTMEM_DRAM;
    ttmem_alloc(&allocation); // the line of all
    return allocation.id;
}

namespace nn {
class Model {
  public:
    Model()
    {
        for (int i = 0; i < 8; i++)
            weights_.push_back(make(65536)); // the weights
    }

    void step()
    {
        const std::uint64_t scratch = make(4096);
        cache_.push_back(make(16384)); // the leak
        ttmem_free(0, TTMEM_DRAM, scratch);
    }

  private:
    std::vector<std::uint64_t> weights_, cache_;
};
} // namespace nn

int main()
{
    ttmem_device device{};
    device.arch = 2;
    ttmem_device_open(&device);
    nn::Model model;
    for (int i = 0; i < 40; i++) {
        model.step(); // the loop
        const timespec pause{0, 1000000};
        (void)nanosleep(&pause, nullptr);
    }
    return 0;
}
