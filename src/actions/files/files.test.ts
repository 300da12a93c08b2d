import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { actionContext } from "../../testing/action-context.js";
import { type FileActions, fileActions } from "./actions.js";

let world: string;
let root: string;
let actions: FileActions;

beforeEach(() => {
  world = mkdtempSync(join(tmpdir(), "mailroom-files-"));
  root = join(world, "open");
  mkdirSync(root);
  writeFileSync(join(world, "secret.txt"), "secret");
  mkdirSync(join(world, "open-but-not"));
  writeFileSync(join(world, "open-but-not", "near.txt"), "secret");
  actions = fileActions({ roots: [root], maxBytes: 1_000 });
});
afterEach(() => rmSync(world, { recursive: true }));

async function run(name: keyof FileActions, args: Record<string, unknown>): Promise<unknown> {
  const action = actions[name];
  const checked = await action.check(args);
  if (!checked.ok) throw new Error(checked.message);
  return action.run(checked.value, actionContext());
}

describe("file actions", () => {
  it("[AGT-ACT-01] write, read, list and delete inside their root", async () => {
    expect(await run("write_file", { path: "a/b/c.txt", content: "ä text" })).toBe(
      "successfully wrote to a/b/c.txt",
    );
    expect(await run("read_file", { path: join(root, "a/b/c.txt") })).toBe("ä text");
    await run("write_file", { path: "a/b/c.txt", content: "short" });
    expect(await run("read_file", { path: "a/b/../b/c.txt" })).toBe("short");
    await run("create_directory", { path: "a/x" });
    expect(await run("read_directory", { path: "a" })).toBe("b\nx");
    await run("delete_file", { path: "a/b/c.txt" });
    expect(existsSync(join(root, "a/b/c.txt"))).toBe(false);
  });

  it("report the reason of a failure", async () => {
    await expect(run("read_file", { path: "none" })).rejects.toThrow("'none': no such file");
    await expect(run("read_file", { path: "." })).rejects.toMatchObject({ code: "not_a_file" });
    await run("create_directory", { path: "d" });
    await expect(run("create_directory", { path: "d" })).rejects.toMatchObject({ code: "file_exists" });
    await expect(run("write_file", { path: "x" })).rejects.toThrow("content");
    writeFileSync(join(root, "binary"), Buffer.from([0xff, 0xfe, 0]));
    await expect(run("read_file", { path: "binary" })).rejects.toMatchObject({ code: "not_text" });
    await expect(
      fileActions({ roots: [] }).read_file.run({ path: "a" }, actionContext()),
    ).rejects.toMatchObject({
      code: "file_no_roots",
    });
  });

  it("reject files that are too large", async () => {
    writeFileSync(join(root, "large"), "x".repeat(1_001));
    await expect(run("read_file", { path: "large" })).rejects.toMatchObject({ code: "file_too_large" });
    await expect(run("write_file", { path: "new", content: "x".repeat(1_001) })).rejects.toMatchObject({
      code: "file_too_large",
    });
    expect(existsSync(join(root, "new"))).toBe(false);
  });
});

describe("a file that is overwritten", () => {
  it("keeps its permissions", async () => {
    const file = join(root, "run.sh");
    writeFileSync(file, "old");
    chmodSync(file, 0o750);
    await run("write_file", { path: "run.sh", content: "new" });
    expect(readFileSync(file, "utf8")).toBe("new");
    expect(statSync(file).mode & 0o777).toBe(0o750);
  });

  it("keeps its old text when the disk is full, and the agent receives the error", () => {
    writeFileSync(join(root, "a.txt"), "old");
    const script = `
      import { fileActions } from ${JSON.stringify(join(import.meta.dirname, "actions.ts"))};
      // Otherwise the limit ends the process.
      process.on("SIGXFSZ", () => {});
      const { write_file } = fileActions({ roots: [${JSON.stringify(root)}] });
      await write_file.run({ path: "a.txt", content: "x".repeat(900_000) }, {}).then(console.log, (error) => console.log(error.code));`;
    const node = `exec "$0" --import tsx --input-type=module -e "$1"`;
    const said = execFileSync("sh", ["-c", `ulimit -f 500; ${node}`, process.execPath, script], {
      encoding: "utf8",
    });
    expect(said.trim()).toBe("file_refused");
    expect(readFileSync(join(root, "a.txt"), "utf8")).toBe("old");
    expect(readdirSync(root)).toEqual(["a.txt"]);
  });
});

describe("attempts to escape", () => {
  const escapes = [
    "../secret.txt",
    "a/../../secret.txt",
    "../open-but-not/near.txt",
    "/etc/passwd",
    "..",
    "link/secret.txt",
    "link-to-file",
    "a\0/../../secret.txt",
  ];

  beforeEach(() => {
    symlinkSync(world, join(root, "link"));
    symlinkSync(join(world, "secret.txt"), join(root, "link-to-file"));
    symlinkSync(join(world, "not-there-yet"), join(root, "dangling"));
  });

  it.each(escapes)("[AGT-ACT-02] reading %j fails", async (path) => {
    await expect(run("read_file", { path })).rejects.toMatchObject({
      code: expect.stringMatching(/^file_(outside|bad_path)$/),
    });
    await expect(run("read_directory", { path })).rejects.toMatchObject({ name: "MailroomError" });
  });

  it.each([...escapes, "dangling", "link/new.txt", "link/new/deep.txt"])("writing %j fails", async (path) => {
    await expect(run("write_file", { path, content: "gotcha" })).rejects.toMatchObject({
      name: "MailroomError",
    });
    expect(readFileSync(join(world, "secret.txt"), "utf8")).toBe("secret");
    expect(existsSync(join(world, "not-there-yet"))).toBe(false);
    expect(existsSync(join(world, "new.txt"))).toBe(false);
    expect(existsSync(join(world, "new"))).toBe(false);
  });

  it("deleting a link deletes only the link", async () => {
    await run("delete_file", { path: "link-to-file" });
    await run("delete_file", { path: "link" });
    expect(existsSync(join(world, "secret.txt"))).toBe(true);
    await expect(run("delete_file", { path: "../secret.txt" })).rejects.toMatchObject({
      code: "file_outside",
    });
    await expect(run("create_directory", { path: "../new" })).rejects.toMatchObject({ code: "file_outside" });
  });

  it("opening a named pipe does not block", async () => {
    execFileSync("mkfifo", [join(root, "pipe")]);
    await expect(run("read_file", { path: "pipe" })).rejects.toMatchObject({ code: "not_a_file" });
  });
});
