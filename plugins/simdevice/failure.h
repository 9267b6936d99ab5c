// How functions of the plug-in fail.
#pragma once
#include "../failure.h"

namespace anabranch::simdevice {

using namespace plugin;

}  // namespace anabranch::simdevice
