import { createParser } from "eventsource-parser";

/** Posts and reads the event stream to its end. */
export async function readSseEvents(
  url: string,
  token: string,
  body: unknown,
  onEvent: (event: { event: string; data: unknown }) => void = () => {},
): Promise<{ event: string; data: unknown }[]> {
  const answer = await fetch(url, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const events: { event: string; data: unknown }[] = [];
  const parser = createParser({
    onEvent: ({ event = "message", data }) => {
      const parsed = { event, data: JSON.parse(data) as unknown };
      events.push(parsed);
      onEvent(parsed);
    },
  });
  const decoder = new TextDecoder();
  if (answer.body !== null) {
    for await (const part of answer.body) parser.feed(decoder.decode(part, { stream: true }));
  }
  return events;
}
