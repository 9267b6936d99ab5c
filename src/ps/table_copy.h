// Writes a growable table from its servers to one file, in parts, so that neither side holds it twice.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "io/atomic_file.h"
#include "ps/client.h"
#include "sparse/table_file.h"

namespace anabranch::ps {

// The file does not depend on the number of servers if nothing changes meanwhile: its rows are ordered by the first
// bits of their hash, as many as the number of rows requires, and by ascending key in each such part. Waits for the
// servers.
void save_table(const std::vector<Remote>& servers, const std::string& path, io::FileSet* files);

// use(header, rows) for parts of the table at one server, in the form of a file; rows may change between two parts.
void each_part(const Remote& server, const std::function<void(const sparse::TableHeader&, std::string_view rows)>& use);

}  // namespace anabranch::ps
