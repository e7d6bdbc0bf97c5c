# Formula that builds from source. Put the address of a release's source archive
# and its SHA-256 in place of URL and SHA256, into a tap's Formula folder, then:
#   brew install --build-from-source ./dmgbench.rb && brew test dmgbench
class Dmgbench < Formula
  desc "Run published disk image benchmarks reproducibly"
  homepage "HOMEPAGE"
  url "URL"
  sha256 "SHA256"
  license "Apache-2.0"
  head "HOMEPAGE.git", branch: "main"

  depends_on "go" => :build

  def install
    ENV["CGO_ENABLED"] = "0"
    system "go", "build", *std_go_args(ldflags: "-s -w -X dmgbench/internal/cli.released=#{version}"), "./cmd/dmgbench"
    system "go", "build", *std_go_args(ldflags: "-s -w", output: bin/"dmgbench-fleet"), "./cmd/dmgbench-fleet"
    system bin/"dmgbench", "man", buildpath/"man"
    man1.install Dir[buildpath/"man/*.1"]
    generate_completions_from_executable(bin/"dmgbench", "completion")
    generate_completions_from_executable(bin/"dmgbench-fleet", "completion")
    doc.install Dir["docs/*.md"], "CHANGELOG.md", "NOTICE"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/dmgbench version")
    (testpath/"p.toml").write shell_output("#{bin}/dmgbench plans show quick --toml")
    system bin/"dmgbench", "check", testpath/"p.toml"
    system bin/"dmgbench", "run", "quick", "--dry-run"
  end
end
