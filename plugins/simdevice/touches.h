// Reports a CPU access to device memory: the device and the byte, on stderr, before the process ends because of it.
#pragma once

namespace anabranch::simdevice {

class Mapping;

void explain_touches(const Mapping& mapping);  // from now on
void stop_explaining_touches();

}  // namespace anabranch::simdevice
