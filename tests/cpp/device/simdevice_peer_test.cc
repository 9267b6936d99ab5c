// Whether another process has ended, by its descriptor and without one.
#include "../../../plugins/simdevice/peer.h"

#include <sys/wait.h>

#include <csignal>
#include <thread>

#include "harness.h"

namespace anabranch::simdevice {
namespace {

pid_t sleeper() {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  return child;
}

TEST(SimdevicePeer, AProcessThatEndsIsSeen) {
  for (const bool by_descriptor : {true, false}) {
    const pid_t child = sleeper();
    const Peer peer(child, start_of(child), by_descriptor);
    EXPECT_FALSE(peer.ended());
    kill(child, SIGKILL);
    for (int look = 0; look < 5000 && !peer.ended(); ++look) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_TRUE(peer.ended()) << "no wait for it yet";
    waitpid(child, nullptr, 0);
    EXPECT_TRUE(peer.ended());
    EXPECT_EQ(start_of(child), 0U);
  }
}

TEST(SimdevicePeer, AnotherProcessOfThatNumberIsNotTakenForIt) {
  for (const bool by_descriptor : {true, false}) {
    EXPECT_FALSE(Peer(getpid(), start_of(getpid()), by_descriptor).ended());
    EXPECT_TRUE(Peer(getpid(), start_of(getpid()) + 1, by_descriptor).ended());
  }
}

}  // namespace
}  // namespace anabranch::simdevice
