import { describe, expect, it } from "vitest";
import { isSystemSubject, SYSTEM_SUBJECTS } from "./subjects.js";

describe("subjects of the system", () => {
  it("[MAIL-ERR-02] are distinguishable from agents' subjects", () => {
    for (const subject of Object.values(SYSTEM_SUBJECTS)) expect(isSystemSubject(subject)).toBe(true);
    for (const subject of ["", "::", "::::", "Task complete", "std::vector", "::half"]) {
      expect(isSystemSubject(subject)).toBe(false);
    }
  });
});
