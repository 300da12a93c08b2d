/** Line icons, 16 by 16. */
const PATHS = {
  mail: "M2 4h12v8H2zM2.500 4.500 8 9l5.500-4.500",
  tasks: "M2 4h1.500M2 8h1.500M2 12h1.500M6 4h8M6 8h8M6 12h8",
  waits: "M8 4.500v4l2.500 1.500M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0",
  swarm:
    "M4.500 8 11.500 4M4.500 8l7 4M4.500 8a1.500 1.500 0 1 1-3 0 1.500 1.500 0 0 1 3 0M14.500 4a1.500 1.500 0 1 1-3 0 1.500 1.500 0 0 1 3 0M14.500 12a1.500 1.500 0 1 1-3 0 1.500 1.500 0 0 1 3 0",
  talk: "M2 3h12v8H7l-3 2.500V11H2z",
  globe: "M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0M2 8h12M8 2c3.500 4 3.500 8 0 12M8 2c-3.500 4-3.500 8 0 12",
  key: "M9.500 6.500 3 13v1h2l1-1v-1h1l1.500-2M14 5.500a3.500 3.500 0 1 1-7 0 3.500 3.500 0 0 1 7 0",
  pulse: "M1.500 8H5l2-5 2.500 10 2-5h3",
  lock: "M3.500 7h9v6.500h-9zM5.500 7V5a2.500 2.500 0 0 1 5 0v2",
  search: "M11 7a4 4 0 1 1-8 0 4 4 0 0 1 8 0M10 10l3.500 3.500",
  plus: "M8 3v10M3 8h10",
  close: "M4 4l8 8M12 4l-8 8",
  up: "M8 13V3M4 7l4-4 4 4",
  down: "M8 3v10M4 9l4 4 4-4",
  more: "M3 8h.010M8 8h.010M13 8h.010",
  copy: "M5.500 5.500V3H13v7.500h-2.500M3 5.500h7.500V13H3z",
  sun: "M10.500 8a2.500 2.500 0 1 1-5 0 2.500 2.500 0 0 1 5 0M8 1.500V3M8 13v1.500M1.500 8H3M13 8h1.500M3.400 3.400l1 1M11.600 11.600l1 1M3.400 12.600l1-1M11.600 4.400l1-1",
  moon: "M13 9.500A5.500 5.500 0 1 1 6.500 3a4.500 4.500 0 0 0 6.500 6.500",
  back: "M10 3 5 8l5 5",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 16 }: { readonly name: IconName; readonly size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      stroke-width="1.3"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
      focusable="false"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
