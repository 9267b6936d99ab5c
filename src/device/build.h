// For which version of the engine a plug-in of devices was built: it exports this function beside its table. Kernels
// take structs of ops/device/args.h, which are no part of the interface and change with every version.
#pragma once

#define AB_DEVICE_BUILD "anabranch_device_build"

extern "C" {
typedef const char* (*ab_device_build_entry)(void);  // "0.1.0"
}
