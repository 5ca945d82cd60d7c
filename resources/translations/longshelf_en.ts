<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="en" sourcelanguage="en">
  <context>
    <name>Chooser</name>
    <message numerus="yes">
      <source>{0} and %n more</source>
      <translation>
        <numerusform>{0} and %n more</numerusform>
        <numerusform>{0} and %n more</numerusform>
      </translation>
    </message>
  </context>
  <context>
    <name>DropOverlay</name>
    <message numerus="yes">
      <source>%Ln file(s)</source>
      <translation>
        <numerusform>%Ln file</numerusform>
        <numerusform>%Ln files</numerusform>
      </translation>
    </message>
    <message numerus="yes">
      <source>%n folder(s)</source>
      <translation>
        <numerusform>%n folder</numerusform>
        <numerusform>%n folders</numerusform>
      </translation>
    </message>
  </context>
  <context>
    <name>LibraryPane</name>
    <message numerus="yes">
      <source>Forget what was read of %n document(s)?</source>
      <translation>
        <numerusform>Forget what was read of this document?</numerusform>
        <numerusform>Forget what was read of %n documents?</numerusform>
      </translation>
    </message>
    <message numerus="yes">
      <source>Remove %n document(s) from the library?</source>
      <translation>
        <numerusform>Remove %n document from the library?</numerusform>
        <numerusform>Remove %n documents from the library?</numerusform>
      </translation>
    </message>
  </context>
  <context>
    <name>ModelsDialog</name>
    <message numerus="yes">
      <source>%n document(s) must be read again before this model can be asked about them, unless it read them before: about {0} on the disk. What the other model remembers stays, and serves again when you go back to it.</source>
      <translation>
        <numerusform>%n document must be read again before this model can be asked about it, unless it read it before: about {0} on the disk. What the other model remembers stays, and serves again when you go back to it.</numerusform>
        <numerusform>%n documents must be read again before this model can be asked about them, unless it read them before: about {0} on the disk. What the other model remembers stays, and serves again when you go back to it.</numerusform>
      </translation>
    </message>
  </context>
  <context>
    <name>SkippedDialog</name>
    <message numerus="yes">
      <source>%Ln file(s) were skipped.</source>
      <translation>
        <numerusform>%Ln file was skipped.</numerusform>
        <numerusform>%Ln files were skipped.</numerusform>
      </translation>
    </message>
  </context>
  <context>
    <name>StartPage</name>
    <message numerus="yes">
      <source>Ask about %n document(s)</source>
      <translation>
        <numerusform>Ask about %n document</numerusform>
        <numerusform>Ask about %n documents</numerusform>
      </translation>
    </message>
  </context>
  <context>
    <name>StatusLine</name>
    <message numerus="yes">
      <source>%n more waiting</source>
      <translation>
        <numerusform>%n more waiting</numerusform>
        <numerusform>%n more waiting</numerusform>
      </translation>
    </message>
  </context>
  <context>
    <name>Words</name>
    <message numerus="yes">
      <source>%Ln token(s)</source>
      <translation>
        <numerusform>%Ln token</numerusform>
        <numerusform>%Ln tokens</numerusform>
      </translation>
    </message>
  </context>
</TS>
