// Version of the engine that a device plug-in was built for: the plug-in exports this function next to its table.
// Kernels take structs of ops/device/args.h, which are not part of the plug-in interface and change with every version.
#pragma once

#define AB_DEVICE_BUILD "anabranch_device_build"

extern "C" {
typedef const char* (*ab_device_build_entry)(void);  // "0.1.0"
}
