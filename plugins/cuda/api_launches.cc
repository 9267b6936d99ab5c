#include "handles.h"
#include "kernels.h"
#include "process.h"
#include "step_kernels.h"

namespace anabranch::cuda {
namespace {

void check_args(ab_kernel kernel, const void* args, size_t size) {
  given(kernel, "kernel");
  need(args != nullptr, "args must not be null");
  if (size != args_size_of(kernel)) [[unlikely]]
    fail(AB_INVALID_ARGUMENT, "kernel ", key_of(kernel), " takes args of ", args_size_of(kernel), " bytes, got ", size);
}

int kernel_find(const char* key, ab_kernel* out) {
  return called([&](Process&) {
    given(key, "key");
    given(out, "out") = find_kernel_of(key);
    if (!*out) fail(AB_NOT_FOUND, "cuda has no kernel ", key);
  });
}

int kernel_room(ab_kernel kernel, const void* args, size_t size, size_t* workspace) {
  return called([&](Process&) {
    check_args(kernel, args, size);
    given(workspace, "workspace") = room_of(kernel, args);
  });
}

int launch(ab_queue* queue, ab_kernel kernel, const void* args, size_t size, void* workspace, size_t room) {
  return working([&](Process&) {
    const ab_queue& q = given(queue, "queue");
    check_args(kernel, args, size);
    use_device(q.device);
    if (const size_t needed = room_of(kernel, args); needed > (workspace ? room : 0)) [[unlikely]] {
      fail(AB_INVALID_ARGUMENT, "kernel ", key_of(kernel), " needs a workspace of ", needed, " bytes, got ",
           workspace ? room : 0);
    }
    well(run_kernel(kernel, q.stream, args, workspace, room), "kernel ", key_of(kernel));
  });
}

int kernel_make(ab_kernel kernel, const void* table, size_t size, ab_kernel* out) {
  return called([&](Process& p) {
    given(kernel, "kernel");
    need(table != nullptr, "table must not be null");
    given(out, "out") = nullptr;
    if (!p.setting("device_compile", true)) fail(AB_UNSUPPORTED, "FLAGS_device_compile is off");
    *out = new_kernel(kernel, make_step_kernel(key_of(kernel), table, size));
    p.made(Thing::kKernels);
  });
}

int kernel_free(ab_kernel kernel) {
  return called([&](Process& p) {
    given(kernel, "kernel");
    need(free_kernel(kernel), "kernel ", key_of(kernel), " was not made by kernel_make()");
    p.freed(Thing::kKernels, cudaSuccess, "freeing a kernel");
  });
}

int library_plan(int device, const char* key, const void* desc, size_t size, ab_library** out, size_t* workspace) {
  return called([&](Process& p) {
    p.check_device(device);
    given(key, "key");
    given(out, "out") = nullptr;
    given(workspace, "workspace");
    need(desc || !size, "desc must not be null");
    use_device(device);
    auto library = std::make_unique<ab_library>(ab_library{device, plan_call(p, device, key, desc, size)});
    *workspace = library->call->room();
    p.made(Thing::kLibraries);
    *out = library.release();
  });
}

int library_run(ab_queue* queue, ab_library* library, const ab_operand* operands, int count, void* workspace,
                size_t room) {
  return working([&](Process&) {
    const ab_queue& q = given(queue, "queue");
    const ab_library& l = given(library, "library");
    need(l.device == q.device, "a call planned for device ", l.device, " is put into a queue of device ", q.device);
    need(operands || count == 0, "operands must not be null");
    need((workspace ? room : 0) >= l.call->room(), "a call needs a workspace of ", l.call->room(), " bytes, got ",
         room);
    use_device(q.device);
    l.call->run(q, operands, count, workspace);
  });
}

int library_free(ab_library* library) {
  return called([&](Process& p) {
    given(library, "library");
    delete library;
    p.freed(Thing::kLibraries, cudaSuccess, "freeing a library call");
  });
}

}  // namespace

void fill_launches(ab_device_api& api) {
  api.kernel_find = kernel_find;
  api.kernel_room = kernel_room;
  api.launch = launch;
  api.kernel_make = kernel_make;
  api.kernel_free = kernel_free;
  api.library_plan = library_plan;
  api.library_run = library_run;
  api.library_free = library_free;
}

}  // namespace anabranch::cuda
