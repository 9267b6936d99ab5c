/* The interface between the engine and a device plug-in: a C interface, so that a plug-in may be built by another
   compiler, with another standard library. A plug-in exports `anabranch_device_1`, which returns its
   table. One plug-in is open in a process at a time.

   Rules that hold for every function:
   - It may be called from any thread. Work of several threads in one queue runs in the order of the calls.
   - It returns an ab_status. After anything but AB_OK, last_error() of the same thread describes the failure in
     one line, and no argument of the caller has been kept. No C++ exception crosses.
   - Pointers to host memory (texts, args, descriptions, operands) are read during the call only, except the memory
     that a copy names.
   - Device memory that the caller owns stays allocated until every queue that uses it has passed the use.
   - A library that a function needs (cuBLASLt, cuDNN, NCCL) is opened at the first call of that function;
     AB_UNAVAILABLE names the missing library and the places that were searched. open() needs only the driver.
   - After AB_FAULT the devices are lost: every function that waits, queries an event or enqueues work returns AB_FAULT
     with the text of the first fault, until close() and open(). Existing objects can be freed at once.
   - A process that was forked after open() gets AB_UNAVAILABLE from everything.
   - Tables and structs that begin with `size` grow at their end within version 1. The writer sets its size; the
     reader uses no field beyond it. */
#ifndef ANABRANCH_DEVICE_PLUGIN_API_H
#define ANABRANCH_DEVICE_PLUGIN_API_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AB_DEVICE_SYMBOL "anabranch_device_1"
#define AB_HOST_MEMORY (-1) /* as the device of memory: pinned host memory, of allocate_pinned() */
#define AB_FOREVER (-1)     /* as a deadline in milliseconds */

typedef enum ab_status {
  AB_OK = 0,
  AB_INVALID_ARGUMENT = 1,   /* the caller broke a rule of this file */
  AB_NOT_FOUND = 2,          /* kernel_find(), library_plan(): no such key. An answer, not a failure */
  AB_UNSUPPORTED = 3,        /* known, but not for these arguments on this device */
  AB_RESOURCE_EXHAUSTED = 4, /* device or pinned memory */
  AB_UNAVAILABLE = 5,        /* no driver, no library, a communicator whose peer is gone, a forked process */
  AB_TIMED_OUT = 6,          /* event_wait(): the deadline has passed, the event has not */
  AB_FAULT = 7,              /* what was launched went wrong; the devices are lost */
  AB_INTERNAL = 8            /* a defect of the plug-in */
} ab_status;

/* Where memory lies. The numbers are those of the engine's PlaceKind. */
typedef enum ab_place_kind { AB_PLACE_CPU = 0, AB_PLACE_CUDA = 1, AB_PLACE_PINNED = 2 } ab_place_kind;

/* Element types. The numbers are those of Fluid's VarType.Type. */
typedef enum ab_dtype {
  AB_BOOL = 0,
  AB_INT16 = 1,
  AB_INT32 = 2,
  AB_INT64 = 3,
  AB_FLOAT16 = 4,
  AB_FLOAT32 = 5,
  AB_FLOAT64 = 6,
  AB_UINT8 = 20,
  AB_INT8 = 21,
  AB_BFLOAT16 = 22
} ab_dtype;

typedef enum ab_access {
  AB_READ = 1,
  AB_WRITE = 2,
  AB_READ_WRITE = 3,
  AB_ACCUMULATE = 4 /* by atomic operations whose order does not matter: no order with others of this kind */
} ab_access;

typedef enum ab_collective {                        /* count is of elements */
                             AB_ALL_REDUCE_SUM = 0, /* send and recv: count. In place when they are equal */
                             AB_ALL_REDUCE_MAX = 1,
                             AB_ALL_REDUCE_MIN = 2,
                             AB_ALL_REDUCE_PROD = 3,
                             AB_REDUCE_SUM = 4, /* recv is written at root alone, and may be null elsewhere */
                             AB_BROADCAST = 5,  /* send is read at root alone, and may be null elsewhere */
                             AB_ALL_GATHER = 6, /* send: count; recv: ranks * count, in the order of ranks */
                             AB_REDUCE_SCATTER =
                                 7 /* send: ranks * count; recv: count, the sum of part number rank of each */
} ab_collective;

typedef struct ab_queue ab_queue;                /* work of one device, which passes in the order it was put in */
typedef struct ab_event ab_event;                /* a point in a queue */
typedef struct ab_library ab_library;            /* a planned call of a library */
typedef struct ab_graph ab_graph;                /* captured work */
typedef struct ab_comm ab_comm;                  /* one rank's part of a communicator */
typedef const struct ab_kernel_entry* ab_kernel; /* valid until close() */

/* A range of device memory that an operation uses. */
typedef struct ab_operand {
  void* address; /* null when bytes is 0 or the operand is left out */
  uint64_t bytes;
  uint32_t access; /* ab_access */
  uint32_t reserved;
} ab_operand;

typedef struct ab_device_info {
  uint32_t size;
  int32_t major, minor; /* compute capability; 0.0 of a simulated device */
  int32_t driver;       /* version of the driver, 13000 for 13.0; 0 when there is none */
  uint64_t memory;      /* bytes */
  char name[128];
  char libraries[256]; /* opened so far, "cuBLASLt 13.1.0 cuDNN 9.19.0"; empty at first */
} ab_device_info;

/* What the engine offers. It stays valid until close() has returned. */
typedef struct ab_host {
  uint32_t size;
  uint32_t reserved;
  void* self;                                           /* first argument of every function here */
  void (*log)(void* self, int level, const char* line); /* level: 0 information, 1 warning, 2 error */
  /* The value of FLAGS_<name> as a text that stays valid until the next call, or null when there is no such flag. */
  const char* (*setting)(void* self, const char* name);
  /* The engine's CPU kernels for the keys of library_plan(), for devices without such libraries. pointers
     are host addresses of the operands, in their order. Each returns an ab_status and writes the reason of a failure
     to `text`. */
  int (*library_room)(void* self, const char* key, const void* desc, size_t size, size_t* workspace, char* text,
                      size_t room);
  int (*library_run)(void* self, const char* key, const void* desc, size_t size, void* const* pointers, int count,
                     void* workspace, char* text, size_t room);
} ab_host;

#define AB_DEVICE_SIMULATED 1u   /* addresses are not those of a GPU; no speed means anything */
#define AB_DEVICE_NEEDS_MARKS 2u /* texts of queue_mark() show in its errors: call it for each node */

typedef struct ab_device_api {
  uint32_t size;
  uint32_t flags;
  const char* name; /* "cuda", "simdevice" */

  /* ---- process */
  /* Before anything else, once until close(). *devices: how many there are; 0 with AB_OK when a driver is there but no
     device, AB_UNAVAILABLE when the driver is missing. host may be null: no log, no settings, no library calls. */
  int (*open)(const ab_host* host, int* devices);
  /* Everything has been freed and no other call is under way. AB_INVALID_ARGUMENT names what is left; the devices are
     closed all the same. */
  int (*close)(void);
  /* Copies the text of this thread's last failure, cut to room - 1 characters. Returns its whole length. */
  size_t (*last_error)(char* text, size_t room);
  int (*device_info)(int device, ab_device_info* out);
  int (*memory_info)(int device, size_t* free_bytes, size_t* total);

  /* ---- memory */
  /* Aligned to 256 bytes, holding anything. bytes 0: a null pointer. May be slow and may wait for the device: keep a
     pool. The CPU must not touch the address. */
  int (*allocate)(int device, size_t bytes, void** out);
  /* The caller has waited (event_wait, event_query) for the last use. Null is nothing. */
  int (*release)(int device, void* p);
  /* Host memory that copies may name. The CPU touches it only where no copy of it is under way. */
  int (*allocate_pinned)(size_t bytes, void** out);
  int (*release_pinned)(void* p);

  /* ---- queues and events */
  /* priority: 0 usual, above 0 earlier. name shows in errors and profiles. */
  int (*queue_new)(int device, int priority, const char* name, ab_queue** out);
  int (*queue_free)(ab_queue* queue); /* all that was put into it has passed */
  /* What follows in this queue belongs to `text` ("#12 relu -> fc_0.tmp_1"); null or empty: to no node. It shows in
     errors and profiles and changes nothing else. */
  int (*queue_mark)(ab_queue* queue, const char* text);
  int (*event_new)(int device, int timed, ab_event** out);
  int (*event_free)(ab_event* event); /* allowed at any time: waits that were put into queues stay */
  /* The event now follows everything in the queue. An event may be recorded again; waits put in before mean the
     record before. */
  int (*event_record)(ab_event* event, ab_queue* queue);
  /* What follows in the queue, of any device, runs after the event's last record. Never recorded: no wait. */
  int (*queue_wait)(ab_queue* queue, ab_event* event);
  /* The calling thread waits, at most within_ms milliseconds. Never recorded: passed. */
  int (*event_wait)(ab_event* event, int64_t within_ms);
  /* *passed: 1 or 0. *ns (may be null), of a timed event that has passed: nanoseconds since some moment that is the
     same for all events of the device. */
  int (*event_query)(ab_event* event, int* passed, uint64_t* ns);
  /* Calls fn(arg, status) on some thread when the queue gets there. status: AB_OK, or AB_FAULT of what ran
     before; it is called then, too. fn calls nothing of this table and does not wait. Not while capturing. */
  int (*queue_call)(ab_queue* queue, void (*fn)(void* arg, int status), void* arg);

  /* ---- bytes */
  /* Devices: 0 and above, or AB_HOST_MEMORY. At least one is the queue's device. Ranges do not overlap. */
  int (*copy)(ab_queue* queue, void* to, int to_device, const void* from, int from_device, size_t bytes);
  int (*fill)(ab_queue* queue, void* to, int byte, size_t bytes); /* memory of the queue's device */

  /* ---- kernels */
  int (*kernel_find)(const char* key, ab_kernel* out); /* "map/sigmoid/f32" */
  /* args: the kernel's struct of ops/device/args.h, size: its bytes. *workspace: bytes that a launch with these
     args needs. It depends on extents and counts in args, never on addresses. */
  int (*kernel_room)(ab_kernel kernel, const void* args, size_t size, size_t* workspace);
  /* workspace: device memory of at least kernel_room() bytes, used until the queue has passed. It may be null when
     that is 0. */
  int (*launch)(ab_queue* queue, ab_kernel kernel, const void* args, size_t size, void* workspace, size_t room);

  /* ---- libraries */
  /* "gemm", "conv2d" ...: desc is the key's struct of ops/device/args.h. */
  int (*library_plan)(int device, const char* key, const void* desc, size_t size, ab_library** out, size_t* workspace);
  int (*library_run)(ab_queue* queue, ab_library* library, const ab_operand* operands, int count, void* workspace,
                     size_t room);
  int (*library_free)(ab_library* library); /* no queue uses it any more */

  /* ---- graphs */
  /* What follows in the queue is kept, not run. Other queues join the capture when they wait for an event recorded in
     it, and have to be waited for by this queue before capture_end(). Captured queues wait for events of the capture
     alone, without other waiters; queue_call() is not captured. */
  int (*capture_begin)(ab_queue* queue);
  /* A capture that broke a rule ends here with AB_INVALID_ARGUMENT; the queues go on as usual. */
  int (*capture_end)(ab_queue* queue, ab_graph** out);
  /* Runs all of it, with the addresses and args of its capture, after what is in the queue; what follows in the queue
     waits for all of it. One graph runs once at a time: a second launch waits for the first. */
  int (*graph_launch)(ab_graph* graph, ab_queue* queue);
  int (*graph_free)(ab_graph* graph); /* no queue runs it any more */

  /* ---- communicators */
  /* A name for a new communicator, to be handed to all ranks, in other processes, too. */
  int (*comm_id)(char id[128]);
  /* Rank number `rank` of `ranks`, one a device. May wait until all ranks have called it: one thread that makes
     several ranks does so between comm_group(1) and comm_group(0). */
  int (*comm_new)(int device, const char id[128], int rank, int ranks, ab_comm** out);
  /* 1 starts, 0 ends a group of calls of comm_new() or comm_run() by this thread. A thread that serves several ranks
     of a communicator puts their calls for one collective into one group. Failures may show at the end alone. */
  int (*comm_group)(int begin);
  /* All ranks run the same collectives with the same count, dtype and root in the same order. Sums are in an order
     that is the same for the same ranks and count. */
  int (*comm_run)(ab_comm* comm, ab_queue* queue, ab_collective what, const void* send, void* recv, size_t count,
                  int dtype, int root);
  /* AB_OK, or AB_UNAVAILABLE after a rank is gone or has given up; *failed_rank: which one, -1 when it is not known.
     What is under way may never end; comm_free(abort 1) ends it, with any values. */
  int (*comm_check)(ab_comm* comm, int* failed_rank);
  /* abort 0: all its collectives have passed. abort 1: at any time; the other ranks see it in comm_check(). */
  int (*comm_free)(ab_comm* comm, int abort);

  /* ---- kernels that are made for a program */
  /* A kernel that does what `kernel` does where the table that its args name holds these bytes, in the same bits; it is
     launched with the same args. The bytes are read during the call only. It may take long: the device's compiler runs.
     AB_UNSUPPORTED: there is none, take the kernel itself. */
  int (*kernel_make)(ab_kernel kernel, const void* table, size_t size, ab_kernel* out);
  int (*kernel_free)(ab_kernel kernel); /* of kernel_make(); no queue uses it any more, and no graph */
} ab_device_api;

typedef const ab_device_api* (*ab_device_entry)(void);

#ifdef __cplusplus
} /* extern "C" */
static_assert(sizeof(ab_operand) == 24 && sizeof(ab_device_info) == 408 && sizeof(ab_kernel) == 8,
              "both sides of the interface have to agree on lay-outs");
static_assert(sizeof(ab_device_api) == 16 + 39 * sizeof(void (*)(void)) && offsetof(ab_device_api, open) == 16,
              "functions are added at the end");
#endif
#endif
