// Certificates of servers and workers: each side accepts only the other one's, from the authority it trusts and valid.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/flags.h"
#include "ps_cluster.h"
#include "ps_grpc.h"

namespace anabranch::ps {
namespace {

// Folders with ca.pem, cert.pem and key.pem. Two authorities, `ours` and `others`, each certify a process. `foreign`
// trusts our authority but was certified by the other one; `expired` and `elsewhere` (the name of another machine) were
// certified by ours.
class Certificates {
 public:
  Certificates() : folder_(testing::TempDir() + fmt::format("/anabranch_certificates_{}", getpid())) {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ + "/names") << "subjectAltName=IP:127.0.0.1\n";
    std::ofstream(folder_ + "/elsewhere_names") << "subjectAltName=DNS:example.com,IP:203.0.113.5\n";
    std::ofstream(folder_ + "/issued") << "";
    std::ofstream(folder_ + "/serial") << "01\n";
    std::ofstream(folder_ + "/authority.cnf")
        << "[ca]\ndefault_ca=d\n[d]\ndatabase=" << folder_ << "/issued\nserial=" << folder_
        << "/serial\nnew_certs_dir=" << folder_
        << "\ndefault_md=sha256\nunique_subject=no\npolicy=p\n[p]\ncommonName=supplied\n";
    there_ = make("ours") && make("others") && copy("others", "foreign") && copy("ours", "expired") &&
             copy("ours", "elsewhere") && certify("expired", "20200101000000Z", "20200102000000Z", "names") &&
             certify("elsewhere", "20200101000000Z", "20491231000000Z", "elsewhere_names");
    if (there_) std::filesystem::copy_file(of("ours") + "/ca.pem", of("foreign") + "/ca.pem", kOver);
  }
  ~Certificates() { std::filesystem::remove_all(folder_); }
  Certificates(const Certificates&) = delete;
  bool there() const { return there_; }
  std::string of(const std::string& name) const { return folder_ + "/" + name; }

 private:
  bool run(const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()) == 0; }
  bool make(const std::string& name) {
    const std::string f = of(name);
    std::filesystem::create_directories(f);
    const std::string key = "openssl ecparam -name prime256v1 -genkey -noout -out " + f;
    return run(key + "/ca.key") && run(key + "/key.pem") &&
           run("openssl req -x509 -new -key " + f + "/ca.key -days 2 -subj /CN=" + name + " -out " + f + "/ca.pem") &&
           run("openssl req -new -key " + f + "/key.pem -subj /CN=process -out " + f + "/request") &&
           run("openssl x509 -req -in " + f + "/request -CA " + f + "/ca.pem -CAkey " + f +
               "/ca.key -CAcreateserial -days 2 -extfile " + folder_ + "/names -out " + f + "/cert.pem");
  }
  bool copy(const std::string& from, const std::string& to) {
    std::filesystem::copy(of(from), of(to));
    return true;
  }
  // Another certificate of the same key and authority.
  bool certify(const std::string& name, const std::string& from, const std::string& to, const std::string& names) {
    const std::string f = of(name);
    return run("openssl ca -batch -notext -config " + folder_ + "/authority.cnf -cert " + f + "/ca.pem -keyfile " + f +
               "/ca.key -in " + f + "/request -out " + f + "/cert.pem -startdate " + from + " -enddate " + to +
               " -extfile " + folder_ + "/" + names);
  }
  static constexpr auto kOver = std::filesystem::copy_options::overwrite_existing;
  const std::string folder_;
  bool there_ = false;
};

class WithCertificates {
 public:
  explicit WithCertificates(const std::string& folder) { set_flag("FLAGS_rpc_certificates", folder); }
  ~WithCertificates() { set_flag("FLAGS_rpc_certificates", std::string()); }
};

class PsCertificates : public testing::Test {
 protected:
  void SetUp() override {
    if (!network()) GTEST_SKIP() << "no gRPC here";
    ASSERT_TRUE(made_.there()) << "openssl must be installed";
  }
  std::unique_ptr<Listener> listens(const std::string& name) {
    const WithCertificates its(made_.of(name));
    return network_transport().listen(
        "127.0.0.1:0", [this](MessageRef m, Answer a) { cluster_.servers[0]->handle(std::move(m), std::move(a)); });
  }
  // Whether a client with these certificates can change a parameter of the server.
  bool trains(const std::string& folder, const std::string& endpoint, int deadline_ms) {
    const WithCertificates mine(folder);
    LinkOptions o;
    o.deadline = Milliseconds(deadline_ms);
    Client client(
        o, [](const std::string& e) { return network_transport().connect(e); }, cluster_.timer);
    try {
      const Remote a = client.remote(endpoint, "a");
      client.push(a, filled(-1));
      exchange(client);
      return true;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kUnavailable) << e.message();
      return false;
    }
  }
  int64_t requests() const { return cluster_.servers[0]->stats().requests; }

  const Certificates made_;
  Cluster cluster_{1, 1};
};

TEST_F(PsCertificates, AServerServesOnlyClientsOfItsAuthority) {
  const auto server = listens("ours");
  EXPECT_FALSE(trains("", server->endpoint(), 500));
  for (const char* stranger : {"others", "foreign", "expired"}) {
    EXPECT_FALSE(trains(made_.of(stranger), server->endpoint(), 500)) << stranger;
  }
  EXPECT_EQ(requests(), 0);
  EXPECT_TRUE(trains(made_.of("ours"), server->endpoint(), 30000));
  EXPECT_TRUE(trains(made_.of("elsewhere"), server->endpoint(), 30000));  // only a server is asked for its name
  EXPECT_GT(requests(), 0);
}

TEST_F(PsCertificates, AClientTrustsOnlyServersOfItsAuthority) {
  for (const char* rogue : {"others", "foreign", "expired", "elsewhere"}) {
    const auto server = listens(rogue);
    EXPECT_FALSE(trains(made_.of("ours"), server->endpoint(), 500)) << rogue;
  }
  EXPECT_EQ(requests(), 0);
}

// gRPC alone reports an empty address list when the deadline is over.
TEST_F(PsCertificates, AKeyThatDoesNotFitItsCertificateIsNamedAtOnce) {
  std::filesystem::copy_file(made_.of("others") + "/key.pem", made_.of("elsewhere") + "/key.pem",
                             std::filesystem::copy_options::overwrite_existing);
  const WithCertificates mixed(made_.of("elsewhere"));
  const auto why = [](const std::function<void()>& work) -> std::string {
    try {
      work();
    } catch (const Error& e) {
      return e.message();
    }
    return "not refused";
  };
  const std::string says = "the certificates cannot be used: cert.pem and key.pem do not fit each other";
  EXPECT_NE(why([] { network_transport().connect("127.0.0.1:9"); }).find(says), std::string::npos);
  EXPECT_NE(why([] { network_transport().listen("127.0.0.1:0", {}); }).find(says), std::string::npos);
}

TEST_F(PsCertificates, WithThemAServerMayListenBeyondThisMachine) {
  const WithCertificates ours(made_.of("ours"));
  EXPECT_NE(network_transport().listen("0.0.0.0:0", [](const MessageRef&, const Answer&) {}), nullptr);
  const WithCertificates nowhere(made_.of("nowhere"));
  EXPECT_THROW(network_transport().connect("127.0.0.1:1"), Error);
}

}  // namespace
}  // namespace anabranch::ps
