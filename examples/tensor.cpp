// SPDX-License-Identifier: Apache-2.0
// A C++ program: an object's allocation lives as long as the object.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <ttmem/ttmem.h>
#include <vector>

class Tensor {
  public:
    explicit Tensor(std::uint64_t bytes) : id_(next_id_++)
    {
        ttmem_allocation allocation{};
        allocation.id = id_;
        allocation.address = id_ * 4096;
        allocation.bytes = bytes;
        allocation.region = TTMEM_DRAM;
        ttmem_alloc(&allocation);
    }
    ~Tensor()
    {
        if (id_ != 0)
            ttmem_free(0, TTMEM_DRAM, id_);
    }
    Tensor(Tensor &&other) noexcept : id_(other.id_)
    {
        other.id_ = 0;
    }
    Tensor(const Tensor &) = delete;
    Tensor &operator=(const Tensor &) = delete;
    Tensor &operator=(Tensor &&) = delete;

  private:
    static inline std::atomic<std::uint64_t> next_id_{1};
    std::uint64_t id_;
};

int main()
{
    std::vector<Tensor> cache;
    for (int i = 0; i < 8; i++)
        cache.emplace_back(std::uint64_t{2} << 20);
    std::printf("8 tensors of 2 MiB; press Enter to end\n");
    (void)std::getchar();
    return 0;
}
