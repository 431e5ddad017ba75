// The few icons of the page, 16 × 16, drawn with the colour of the text.

const PATHS = {
  processes: "M2 3h12v2H2zM2 7h8v2H2zM2 11h10v2H2z",
  tasks:
    "M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13Zm0 1.5a5 5 0 1 1 0 10A5 5 0 0 1 8 3Zm-.75 1.5v4l3.2 2 .8-1.25-2.5-1.6V4.5z",
  node: "M2 2.5h12v4.5H2zM2 9h12v4.5H2zM4 4v1.5h1.5V4zM4 10.5V12h1.5v-1.5z",
  plus: "M7.25 2h1.5v5.25H14v1.5H8.75V14h-1.5V8.75H2v-1.5h5.25z",
  sun: "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6ZM7.3 1h1.4v2.2H7.3zM7.3 12.8h1.4V15H7.3zM1 7.3h2.2v1.4H1zM12.8 7.3H15v1.4h-2.2zM2.6 3.6l1-1 1.5 1.5-1 1zM10.9 11.9l1-1 1.5 1.5-1 1zM2.6 12.4l1.5-1.5 1 1-1.5 1.5zM10.9 4.1l1.5-1.5 1 1-1.5 1.5z",
  moon: "M6.2 1.8a6.3 6.3 0 1 0 8 8A5.2 5.2 0 0 1 6.2 1.8Z",
  auto: "M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13ZM8 3v10A5 5 0 0 1 8 3Z",
  help: "M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13Zm0 1.3a5.2 5.2 0 1 1 0 10.4A5.2 5.2 0 0 1 8 2.800ZM7.3 10.4h1.4v1.4H7.3zM5.9 6.200c.1-1.200 1-1.900 2.200-1.900 1.200 0 2.100.7 2.100 1.800 0 .8-.4 1.200-1 1.600-.5.35-.6.5-.6 1v.6H7.300v-.8c0-.8.3-1.200 1-1.650.45-.3.6-.45.6-.8 0-.4-.3-.65-.8-.65-.55 0-.85.3-.9.8z",
  close: "M3.6 2.600 8 7l4.400-4.400 1 1L9 8l4.400 4.400-1 1L8 9l-4.400 4.400-1-1L7 8 2.600 3.600z",
  up: "M8 4.500 13 10l-1 1-4-4.400L4 11l-1-1z",
  down: "M8 11.500 3 6l1-1 4 4.400L12 5l1 1z",
} as const;

export function Icon({ name }: { name: keyof typeof PATHS }) {
  return (
    <svg
      class="icon"
      viewBox="0 0 16 16"
      width="16"
      height="16"
      aria-hidden="true"
      fill="currentColor"
      fill-rule="evenodd"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
