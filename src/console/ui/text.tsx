/** Text of others. It reaches the page as text nodes only, with what is invisible made visible. */
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { type Block, type Inline, parseMarkdown } from "../model/markdown.js";
import { isPlain, visible } from "../model/visible-text.js";

const LONG = 20_000;

export function Text({ children }: { readonly children: string }) {
  if (isPlain(children)) return <>{children}</>;
  return (
    <>
      {visible(children).map((piece, index) =>
        piece.mark === undefined ? (
          piece.text
        ) : (
          <span class="marked" title={`Invisible character ${piece.mark}`} key={index}>
            {piece.text}
          </span>
        ),
      )}
    </>
  );
}

/** Long text is cut until somebody asks for all of it. */
function Cut({
  text,
  children,
}: {
  readonly text: string;
  readonly children: (shown: string) => ComponentChildren;
}) {
  const [all, setAll] = useState(false);
  if (text.length <= LONG || all) return <>{children(text)}</>;
  return (
    <>
      {children(text.slice(0, LONG))}
      <button type="button" class="button small" onClick={() => setAll(true)}>
        Show all {text.length.toLocaleString("en-US")} characters
      </button>
    </>
  );
}

export function Pre({ text }: { readonly text: string }) {
  return (
    <Cut text={text}>
      {(shown) => (
        <pre class="text">
          <Text>{shown}</Text>
        </pre>
      )}
    </Cut>
  );
}

export function Markdown({ text }: { readonly text: string }) {
  return <Cut text={text}>{(shown) => <Blocks text={shown} />}</Cut>;
}

function Blocks({ text }: { readonly text: string }) {
  const blocks = useMemo(() => parseMarkdown(text), [text]);
  return (
    <div class="prose">
      {blocks.map((block, index) => (
        <BlockView block={block} key={index} />
      ))}
    </div>
  );
}

function BlockView({ block }: { readonly block: Block }) {
  switch (block.kind) {
    case "paragraph":
      return (
        <p>
          <Inlines items={block.children} />
        </p>
      );
    case "heading":
      return (
        <h3>
          <Inlines items={block.children} />
        </h3>
      );
    case "code":
      return (
        <pre>
          <Text>{block.text}</Text>
        </pre>
      );
    case "quote":
      return (
        <blockquote>
          <Inlines items={block.children} />
        </blockquote>
      );
    case "rule":
      return <hr />;
    case "list": {
      const items = block.items.map((item, index) => (
        <li key={index}>
          <Inlines items={item} />
        </li>
      ));
      return block.ordered ? <ol>{items}</ol> : <ul>{items}</ul>;
    }
    case "table":
      return (
        <table>
          <thead>
            <tr>
              {block.head.map((cell, index) => (
                <th key={index}>
                  <Inlines items={cell} />
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {block.rows.map((row, index) => (
              <tr key={index}>
                {row.map((cell, at) => (
                  <td key={at}>
                    <Inlines items={cell} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      );
  }
}

function Inlines({ items }: { readonly items: readonly Inline[] }) {
  return (
    <>
      {items.map((item, index) => (
        <InlineView item={item} key={index} />
      ))}
    </>
  );
}

const visited = new Set<string>();

function InlineView({ item }: { readonly item: Inline }) {
  switch (item.kind) {
    case "text":
      return <Text>{item.text}</Text>;
    case "code":
      return (
        <code>
          <Text>{item.text}</Text>
        </code>
      );
    case "strong":
      return (
        <strong>
          <Inlines items={item.children} />
        </strong>
      );
    case "emphasis":
      return (
        <em>
          <Inlines items={item.children} />
        </em>
      );
    case "link":
      return (
        <a
          href={item.href}
          target="_blank"
          rel="noopener noreferrer"
          onClick={(event) => {
            if (visited.has(item.host)) return;
            if (
              !window.confirm(
                `This link leaves the console for ${item.host}. Somebody else wrote it. Open it?`,
              )
            )
              event.preventDefault();
            else visited.add(item.host);
          }}
        >
          <Inlines items={item.children} /> <span class="host">({item.host})</span>
        </a>
      );
  }
}
