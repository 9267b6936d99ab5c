// cuDNN, opened when it is first needed.
#pragma once
#include <cudnn.h>

namespace anabranch::cuda {

struct Cudnn {
  decltype(&::cudnnGetVersion) cudnnGetVersion;
  decltype(&::cudnnGetErrorString) cudnnGetErrorString;
  decltype(&::cudnnCreate) cudnnCreate;
  decltype(&::cudnnDestroy) cudnnDestroy;
  decltype(&::cudnnSetStream) cudnnSetStream;
};

const Cudnn& cudnn();  // Unavailable when it is not there

}  // namespace anabranch::cuda
