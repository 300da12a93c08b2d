import ipaddr from "ipaddr.js";
import { describe, expect, it } from "vitest";
import { parseAllowRule } from "./allow.js";
import { createGuard } from "./guard.js";
import { BLOCKED_IPV4, BLOCKED_IPV6, blockedRangeOf, parseAddress } from "./ranges.js";

const strict = createGuard();

describe("blocked ranges", () => {
  it.each([...BLOCKED_IPV4, ...BLOCKED_IPV6])(
    "$cidr ($name, $source) is blocked from end to end",
    (range) => {
      const [network, bits] = ipaddr.parseCIDR(range.cidr);
      const first = network.toByteArray();
      const last = first.map((byte, index) => byte | (0xff >> Math.min(8, Math.max(0, bits - index * 8))));
      for (const bytes of [first, last]) {
        const address = ipaddr.fromByteArray(bytes).toString();
        expect(strict.checkAddress("https:", "name.example", 443, address)?.code).toBe("blocked_address");
      }
    },
  );

  it.each([
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "8.8.8.8",
  ])("%s beside a range is public", (address) =>
    expect(strict.checkAddress("https:", "h", 443, address)).toBeUndefined(),
  );

  it.each(["2606:4700:4700::1111", "2a00::1", "2001:4860:4860::8888"])("%s is public", (address) => {
    expect(strict.checkAddress("https:", "h", 443, address)).toBeUndefined();
  });

  it("blocks unassigned IPv6 addresses", () => {
    const address = parseAddress("4000::1");
    expect(address && blockedRangeOf(address)?.name).toBe("not global unicast");
  });

  it.each([
    ["::ffff:127.0.0.1", "loopback"],
    ["::ffff:a00:1", "private use"],
    ["64:ff9b::169.254.169.254", "link local"],
    ["64:ff9b::7f00:1", "loopback"],
    ["fe80::1%eth0", "link local"],
    ["::1%lo", "loopback"],
  ])("decodes %s", (address, name) => {
    expect(strict.checkAddress("https:", "h", 443, address)?.message).toContain(name);
  });

  it("allows a public address in the same encodings", () => {
    expect(strict.checkAddress("https:", "h", 443, "::ffff:8.8.8.8")).toBeUndefined();
    expect(strict.checkAddress("https:", "h", 443, "64:ff9b::8.8.8.8")).toBeUndefined();
  });
});

describe("URLs", () => {
  it.each([
    "https://127.0.0.1/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://0177.0.0.1/",
    "https://127.1/",
    "https://[::1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[0:0:0:0:0:ffff:7f00:1]/",
    "https://169.254.169.254/latest/meta-data/",
    "https://[fd00:ec2::254]/",
    "http://127.0.0.1:8000/",
  ])("%s is a blocked address", (url) => expect(strict.checkUrl(url)?.code).toBe("blocked_address"));

  it.each([
    "ftp://example.com/",
    "file:///etc/passwd",
    "https://user:pw@example.com/",
    "nonsense",
    "https://[fe80::1%25eth0]/",
  ])("%s is not acceptable", (url) => expect(strict.checkUrl(url)?.code).toBe("invalid_url"));

  it("requires https, except for loopback names and allowed hosts", () => {
    expect(strict.checkUrl("http://example.com/")?.code).toBe("insecure_url");
    expect(strict.checkUrl("http://localhost:8000/")).toBeUndefined();
    const lax = createGuard({ allow: ["desk.internal:8000"] });
    expect(lax.checkUrl("http://desk.internal:8000/")).toBeUndefined();
    expect(lax.checkUrl("http://desk.internal:8001/")?.code).toBe("insecure_url");
    expect(strict.checkUrl("https://example.com/")).toBeUndefined();
  });

  it("also checks the address behind a loopback name", () => {
    expect(strict.checkAddress("http:", "localhost", 80, "93.184.216.34")?.code).toBe("insecure_url");
    expect(strict.checkAddress("http:", "localhost", 80, "127.0.0.1")?.code).toBe("blocked_address");
  });
});

describe("allow-list", () => {
  it.each([
    ["loopback", "127.8.8.8", 1, true],
    ["localhost:8443", "::1", 8443, true],
    ["localhost:8443", "::1", 8444, false],
    ["10.0.0.0/8", "10.255.0.1", 443, true],
    ["10.0.0.0/8", "11.0.0.1", 443, true],
    ["10.0.0.0/8", "192.168.0.1", 443, false],
    ["192.168.1.7:8000", "192.168.1.7", 8000, true],
    ["192.168.1.7:8000", "::ffff:192.168.1.7", 8000, true],
    ["[fd00::/8]:443", "fd12::1", 443, true],
    ["[fd00::/8]:443", "fd12::1", 444, false],
    ["fd00::/8", "fd12::1", 444, true],
    ["other.example", "10.0.0.1", 443, false],
    ["name.example", "10.0.0.1", 443, true],
  ])("rule %s, name.example at %s port %i: allowed %s", (rule, address, port, expected) => {
    const guard = createGuard({ allow: [rule] });
    expect(guard.checkAddress("https:", "name.example", port, address) === undefined).toBe(expected);
  });

  it.each(["", "a b", "10.0.0.0/33", "host:0", "host:70000", "http://host", "*"])(
    "rejects the rule %j",
    (rule) => {
      expect(() => parseAllowRule(rule)).toThrow("is not a rule of the allow-list");
    },
  );
});
