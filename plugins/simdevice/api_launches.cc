#include "process.h"

namespace anabranch::simdevice {
namespace {

// Queries the engine, whose functions are called without the lock.
size_t library_room(const ab_host* host, const char* key, const void* desc, size_t size) {
  if (!host || !host->library_room || !host->library_run) {
    fail(AB_UNAVAILABLE, "the host offers no library calls, and ", key, " is one");
  }
  size_t room = 0;
  char text[1024] = "";
  const int status = host->library_room(host->self, key, desc, size, &room, text, sizeof text);
  if (status != AB_OK) fail(static_cast<ab_status>(status), text);
  return room;
}

int kernel_find(const char* key, ab_kernel* out) {
  return locked([&](Machine&, Lock&) {
    given(key, "key");
    given(out, "out") = device::find_kernel(key);
    if (!*out) fail(AB_NOT_FOUND, "simdevice has no kernel ", key);
  });
}

int kernel_room(ab_kernel kernel, const void* args, size_t size, size_t* workspace) {
  return locked([&](Machine&, Lock&) {
    const ab_kernel_entry& k = given(kernel, "kernel");
    need(size == k.args_size, "kernel ", k.key, " takes args of ", k.args_size, " bytes, got ", size);
    given(workspace, "workspace") = k.room ? k.room(args) : 0;
  });
}

int launch(ab_queue* queue, ab_kernel kernel, const void* args, size_t size, void* workspace, size_t room) {
  return locked([&](Machine& m, Lock&) {
    ab_queue& q = m.queues.check(queue);
    m.put(q, kernel_item(&given(kernel, "kernel"), args, size, workspace, room));
  });
}

// There is no compiler: the compiled kernel reads the table as before, under a separate name.
int kernel_make(ab_kernel kernel, const void* table, size_t size, ab_kernel* out) {
  return locked([&](Machine& m, Lock&) {
    const ab_kernel_entry& k = given(kernel, "kernel");
    need(table != nullptr, "table must not be null");
    need(size > 0, "a table must not be empty");
    given(out, "out");
    if (!m.settings.compiles) fail(AB_UNSUPPORTED, "it has been told to make no kernels");
    auto made = std::make_unique<ab_kernel_entry>(k);
    made->key += " for its table";
    *out = m.kernels.add(std::move(made));
  });
}

int kernel_free(ab_kernel kernel) {
  return locked([&](Machine& m, Lock&) { m.kernels.remove(m.kernels.check(const_cast<ab_kernel_entry*>(kernel))); });
}

int library_plan(int device, const char* key, const void* desc, size_t size, ab_library** out, size_t* workspace) {
  return locked([&](Machine& m, Lock& lock) {
    m.check_device(device);
    given(key, "key");
    given(out, "out");
    need(desc || !size, "desc must not be null");
    auto library = std::make_unique<ab_library>();
    library->device = device;
    library->key = key;
    library->desc.assign(static_cast<const char*>(desc), static_cast<const char*>(desc) + size);
    lock.unlock();
    library->room = library_room(m.host, key, desc, size);
    lock.lock();
    given(workspace, "workspace") = library->room;
    *out = m.libraries.add(std::move(library));
  });
}

int library_run(ab_queue* queue, ab_library* library, const ab_operand* operands, int count, void* workspace,
                size_t room) {
  return locked([&](Machine& m, Lock&) {
    ab_queue& q = m.queues.check(queue);
    const ab_library& call = m.libraries.check(library);
    need(call.device == q.device, "a call planned for device ", call.device, " is put into ", q.text());
    m.put(q, library_item(*m.host, call, operands, count, workspace, room));
  });
}

int library_free(ab_library* library) {
  return locked([&](Machine& m, Lock&) { m.libraries.remove(m.libraries.check(library)); });
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

}  // namespace anabranch::simdevice
