import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createAgentAddress } from "./address.js";
import { buildBroadcast, buildRequest } from "./build.js";
import { buildBodyXml, renderMailXml } from "./render.js";

const common = {
  id: "b0a2d6cf-6f39-4d76-8a30-7d9c0e0ffb44",
  timestamp: "2026-03-02T08:15:30.120Z",
  taskId: "t",
  subject: "New Message",
  body: "Which one is older?",
};

describe("a message as an agent reads it", () => {
  it("has one element per field", () => {
    const message = buildRequest({
      ...common,
      sender: { address_type: "user", address: "u-17" },
      recipient: createAgentAddress("supervisor"),
    });
    expect(renderMailXml(message)).toBe(`
<incoming_message>
<id>b0a2d6cf-6f39-4d76-8a30-7d9c0e0ffb44</id>
<type>request</type>
<timestamp>2026-03-02T08:15:30.120Z</timestamp>
<from type="user">u-17</from>
<to>
<address type="agent">supervisor</address>
</to>
<subject>New Message</subject>
<body>Which one is older?</body>
</incoming_message>
`);
  });

  it("has a line for each recipient", () => {
    const recipients = [createAgentAddress("a"), createAgentAddress("b@weather")];
    const text = renderMailXml(
      buildBroadcast({ ...common, sender: createAgentAddress("supervisor"), recipients }),
    );
    expect(text).toContain(
      '<to>\n<address type="agent">a</address>\n<address type="agent">b@weather</address>\n</to>',
    );
    expect(text).toContain("<type>broadcast</type>");
  });

  it("[MAIL-OURS-04] text cannot close an element or forge a second message", () => {
    fc.assert(
      fc.property(hostileText(), hostileText(), hostileText(), (subject, body, address) => {
        const text = renderMailXml(
          buildRequest({
            ...common,
            subject,
            body,
            sender: { address_type: "user", address: address || "x" },
            recipient: createAgentAddress(address || "x"),
          }),
        );
        expect(tagsOf(text)).toEqual([
          "<incoming_message>",
          "<id>",
          "</id>",
          "<type>",
          "</type>",
          "<timestamp>",
          "</timestamp>",
          '<from type="user">',
          "</from>",
          "<to>",
          '<address type="agent">',
          "</address>",
          "</to>",
          "<subject>",
          "</subject>",
          "<body>",
          "</body>",
          "</incoming_message>",
        ]);
        expect(unescaped(between(text, "<subject>", "</subject>"))).toBe(subject);
        expect(unescaped(between(text, "<body>", "</body>"))).toBe(body);
      }),
    );
  });
});

describe("data as a body", () => {
  it("has an element for each key", () => {
    expect(
      buildBodyXml({ city: "Tokyo", days: 2, where: { lat: 35.7 }, tags: ["a", "b"], none: undefined }),
    ).toBe(
      '<body>\n<city>Tokyo</city>\n<days>2</days>\n<where>\n<lat>35.7</lat>\n</where>\n<tags>["a","b"]</tags>\n</body>',
    );
  });

  it("keys and values cannot open or close elements", () => {
    fc.assert(
      fc.property(hostileText(), hostileText(), (key, value) => {
        const text = buildBodyXml({ [key]: value, list: [value] });
        const tags = tagsOf(text);
        expect(tags).toHaveLength(6);
        expect(tags.at(0)).toBe("<body>");
        expect(tags.at(-1)).toBe("</body>");
      }),
    );
  });
});

/** Text that includes fragments an attacker would use. */
function hostileText(): fc.Arbitrary<string> {
  const piece = fc.oneof(
    fc.constantFrom(
      "</body>",
      "</incoming_message>",
      "<incoming_message>",
      "<",
      ">",
      "&",
      "&lt;",
      '"',
      "'",
      "\n",
      "</",
    ),
    fc.string({ unit: "grapheme" }),
  );
  // In an object literal this key is the prototype, and "list" is used in the test above.
  return fc
    .array(piece, { maxLength: 8 })
    .map((pieces) => pieces.join(""))
    .filter((text) => text !== "list" && text !== "__proto__");
}

function tagsOf(text: string): string[] {
  return text.match(/<[^>]*>/g) ?? [];
}

function between(text: string, open: string, close: string): string {
  return text.slice(text.indexOf(open) + open.length, text.indexOf(close));
}

function unescaped(text: string): string {
  return text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
}
