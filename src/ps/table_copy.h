// Writes a growable table from its servers to one file, in parts, so that neither side holds it twice.
#pragma once
#include <string>
#include <vector>

#include "io/atomic_file.h"
#include "ps/client.h"

namespace anabranch::ps {

// The file does not depend on the number of servers if nothing changes meanwhile: its rows are ordered by the first
// bits of their hash, as many as the number of rows requires, and by ascending key in each such part. Waits for the
// servers.
void save_table(const std::vector<Remote>& servers, const std::string& path, io::FileSet* files);

}  // namespace anabranch::ps
