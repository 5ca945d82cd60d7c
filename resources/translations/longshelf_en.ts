<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="en" sourcelanguage="en">
  <context>
    <name>Chooser</name>
    <message numerus="yes">
      <source>{0} and %n more</source>
      <translation type="unfinished">
        <numerusform />
        <numerusform />
      </translation>
    </message>
  </context>
  <context>
    <name>DropOverlay</name>
    <message numerus="yes">
      <source>%n file(s)</source>
      <translation type="unfinished">
        <numerusform />
        <numerusform />
      </translation>
    </message>
    <message numerus="yes">
      <source>%n folder(s)</source>
      <translation type="unfinished">
        <numerusform />
        <numerusform />
      </translation>
    </message>
  </context>
  <context>
    <name>LibraryPane</name>
    <message numerus="yes">
      <source>Remove %n document(s) from the library?</source>
      <translation type="unfinished">
        <numerusform />
        <numerusform />
      </translation>
    </message>
  </context>
  <context>
    <name>SkippedDialog</name>
    <message numerus="yes">
      <source>%n file(s) were skipped.</source>
      <translation type="unfinished">
        <numerusform />
        <numerusform />
      </translation>
    </message>
  </context>
  <context>
    <name>StartPage</name>
    <message numerus="yes">
      <source>Ask about %n document(s)</source>
      <translation type="unfinished">
        <numerusform />
        <numerusform />
      </translation>
    </message>
  </context>
  <context>
    <name>StatusLine</name>
    <message numerus="yes">
      <source>%n more waiting</source>
      <translation type="unfinished">
        <numerusform />
        <numerusform />
      </translation>
    </message>
  </context>
  <context>
    <name>Words</name>
    <message numerus="yes">
      <source>%n token(s)</source>
      <translation type="unfinished">
        <numerusform />
        <numerusform />
      </translation>
    </message>
  </context>
</TS>
