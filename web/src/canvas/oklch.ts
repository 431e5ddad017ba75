// Colours for canvases. Their lightness, chroma and hue are of OKLCH; what is given to a canvas is hexadecimal: a canvas reads
// `oklch()` anew each time it is set, which took two thirds of painting a graph.

export interface Oklch {
  /** 0 to 1. */
  readonly l: number;
  readonly c: number;
  /** Degrees. */
  readonly h: number;
}

/** Linear light to sRGB, 0 to 255; what the screen does not have is cut off. */
function encoded(light: number): number {
  const value = light <= 0.0031308 ? 12.92 * light : 1.055 * light ** (1 / 2.4) - 0.055;
  return Math.round(Math.min(1, Math.max(0, value)) * 255);
}

/** `#rrggbbaa`. The matrices are Ottosson's (https://bottosson.github.io/posts/oklab/). */
export function oklch({ l, c, h }: Oklch, alpha = 1): string {
  const angle = (h * Math.PI) / 180;
  const [a, b] = [c * Math.cos(angle), c * Math.sin(angle)];
  const long = (l + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const medium = (l - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const short = (l - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const parts = [
    encoded(4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short),
    encoded(-1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short),
    encoded(-0.0041960863 * long - 0.7034186147 * medium + 1.707614701 * short),
    Math.round(alpha * 255),
  ];
  return `#${parts.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
}
