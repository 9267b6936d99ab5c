#include <dlfcn.h>

#include "../opened.h"
#include "kernels.h"
#include "open_library.h"
#include "process.h"

namespace anabranch::cuda {
namespace {

constexpr int kNeededDriver = 13000;

Opened<Process> opened("cuda");

std::string version_text(int driver) { return said(driver / 1000, ".", driver % 1000 / 10); }

void check_driver() {
  int driver = 0;
  (void)cudaDriverGetVersion(&driver);
  if (driver == 0) {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    const std::string why = library ? "libcuda.so.1 is there, but does not answer" : dlerror();
    if (library) dlclose(library);
    fail(AB_UNAVAILABLE, "there is no NVIDIA driver: ", why);
  }
  if (driver < kNeededDriver) {
    fail(AB_UNAVAILABLE, "the NVIDIA driver must be of CUDA ", version_text(kNeededDriver), " or newer, got ",
         version_text(driver));
  }
}

int count_devices() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaErrorNoDevice) {
    (void)cudaGetLastError();
    return 0;
  }
  well(error, "asking for the devices");
  return count;
}

// Code of a device runs on devices of the same generation, and is translated for later ones.
void check_generation(int device) {
  int major = 0, minor = 0;
  well(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "device ", device);
  well(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), "device ", device);
  if (major * 10 + minor >= kOldestGeneration) return;
  fail(AB_UNSUPPORTED, "device ", device, " is of compute capability ", major, ".", minor,
       "; kernels are compiled for ", kOldestGeneration / 10, ".", kOldestGeneration % 10,
       " and later. CUDA_VISIBLE_DEVICES can leave it out");
}

int open(const ab_host* host, int* devices) {
  return told([&] {
    given(devices, "devices");
    opened.open(host, [&] {
      check_kernel_keys();
      check_driver();
      const int count = count_devices();
      for (int device = 0; device < count; ++device) check_generation(device);
      *devices = count;
      return std::make_unique<Process>(host, count);
    });
  });
}

int close() {
  return told([] {
    std::unique_ptr<Process> closed = opened.close();
    const std::string left = closed->left();
    const int lost = closed->faulted() ? closed->devices : 0;
    closed.reset();  // which gives back what it keeps of the devices, as long as they are there
    for (int device = 0; device < lost; ++device) {
      (void)cudaSetDevice(device);
      (void)cudaDeviceReset();  // nothing else makes a device answer again
      (void)cudaGetLastError();
    }
    need(left.empty(), "closed while there were ", left);
  });
}

int device_info(int device, ab_device_info* out) {
  return called([&](Process& p) {
    p.check_device(device);
    need(given(out, "out").size >= sizeof(ab_device_info), "ab_device_info must be of ", sizeof(ab_device_info),
         " bytes");
    cudaDeviceProp properties{};
    well(cudaGetDeviceProperties(&properties, device), "properties of device ", device);
    *out = {};
    out->size = sizeof *out;
    out->major = properties.major;
    out->minor = properties.minor;
    well(cudaDriverGetVersion(&out->driver), "the driver's version");
    out->memory = properties.totalGlobalMem;
    put_text(out->name, sizeof out->name, properties.name);
    put_text(out->libraries, sizeof out->libraries, opened_libraries());
  });
}

int memory_info(int device, size_t* free_bytes, size_t* total) {
  return called([&](Process& p) {
    p.check_device(device);
    given(free_bytes, "free_bytes");
    given(total, "total");
    use_device(device);
    well(cudaMemGetInfo(free_bytes, total), "memory of device ", device);
  });
}

}  // namespace

Process& process() { return opened.get(); }

void throw_fault(const std::string& text) {
  Process* p = opened.look();
  throw Failure(AB_FAULT, p ? p->set_fault(text) : text);
}

void fill_process(ab_device_api& api) {
  api.open = open;
  api.close = close;
  api.last_error = last_error;
  api.device_info = device_info;
  api.memory_info = memory_info;
}

}  // namespace anabranch::cuda
