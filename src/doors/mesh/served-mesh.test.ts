import { expect, it } from "vitest";
import { parseListen } from "./served-mesh.js";

it("parses mesh.listen and rejects anything but host:port", () => {
  expect(parseListen("0.0.0.0:8443")).toEqual({ host: "0.0.0.0", port: 8443 });
  expect(parseListen("[::]:0")).toEqual({ host: "::", port: 0 });
  for (const text of ["8443", ":8443", "localhost", "localhost:", "localhost:99999", "::1:8443"]) {
    expect(() => parseListen(text)).toThrow("is not host:port");
  }
});
