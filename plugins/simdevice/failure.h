// Failures of the functions of the plug-in.
#pragma once
#include "../failure.h"

namespace anabranch::simdevice {

using namespace plugin;

}  // namespace anabranch::simdevice
