"""Tables with each language's characters, most frequent first, and its legacy encodings.

The order follows published letter frequencies. Characters that are not listed are rare in the language. This suffices
to choose between two encodings.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Alphabet:
    """A language's non-ASCII letters in lower case, most frequent first.

    `cased` means that the letters have capital forms. `beside_latin` means that words can also contain ASCII letters.
    """

    name: str
    encodings: tuple[str, ...]
    letters: str
    cased: bool = True
    beside_latin: bool = False


CYRILLIC = ("cp1251", "koi8-r", "koi8-u", "cp866", "mac-cyrillic", "iso8859-5", "cp855")
WESTERN = ("cp1252",)
CENTRAL = ("cp1250", "iso8859-2")
BALTIC = ("cp1257",)

ALPHABETS: tuple[Alphabet, ...] = (
    Alphabet("de", WESTERN, "üäöß", beside_latin=True),
    Alphabet("fr", WESTERN, "éèàêçîôùûâëïœ", beside_latin=True),
    Alphabet("es", WESTERN, "óáíéñúü", beside_latin=True),
    Alphabet("pt", WESTERN, "ãçáéíóêõàúâôü", beside_latin=True),
    Alphabet("it", WESTERN, "èàùòìé", beside_latin=True),
    Alphabet("ca", WESTERN, "àóèéíòçúïü", beside_latin=True),
    Alphabet("sv", WESTERN, "äåöéü", beside_latin=True),
    Alphabet("da", WESTERN, "åøæéô", beside_latin=True),
    Alphabet("is", WESTERN, "áíðéþúýöæó", beside_latin=True),
    Alphabet("tr", ("cp1254",), "ıüşğçöâîûİ", beside_latin=True),
    Alphabet("pl", CENTRAL, "łóęążśćńź", beside_latin=True),
    Alphabet("cs", CENTRAL, "áíéěřčšžýůúňóťď", beside_latin=True),
    Alphabet("sk", CENTRAL, "áíéčšžýľťúňôďóäŕĺ", beside_latin=True),
    Alphabet("hu", CENTRAL, "éáöíőóüúű", beside_latin=True),
    Alphabet("ro", CENTRAL, "ăîţâş", beside_latin=True),
    Alphabet("hr", CENTRAL, "čšžćđ", beside_latin=True),
    Alphabet("lt", BALTIC, "ėšųžūįąčę", beside_latin=True),
    Alphabet("lv", BALTIC, "āīšēūņļžģķčŗ", beside_latin=True),
    Alphabet("et", BALTIC, "äõüöšž", beside_latin=True),
    Alphabet("ru", CYRILLIC, "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё"),
    Alphabet("uk", CYRILLIC, "оаинівртескплмдуязьгбчхйжїюшцщєфґ"),
    Alphabet("bg", CYRILLIC, "аоиентрсвлкдпмзгуъчбцйщшжхюяфь"),
    Alphabet("sr", CYRILLIC, "аоиенрсјтувкдпмлзгбчцшњжћхљђфџ"),
    Alphabet("be", CYRILLIC, "аінеорстыклдпўвумязьбгчхцйшюжэё"),
    Alphabet("el", ("cp1253", "iso8859-7"), "αοιετσνηυρπκμλςάίόέγήώδωχθφύβξζψϊϋΐΰ"),
    Alphabet("he", ("cp1255",), "יוהלאתמרבשנכדחקעפטגסזצםןךףץ", cased=False),
    Alphabet("ar", ("cp1256", "iso8859-6"), "ايلمنوترةبعدسفهكقحجأشصطخذ،ضزإىغثءئآظؤ؟؛", cased=False),
    Alphabet("th", ("cp874",), "านรอกง่เม้ยลวดทตสัิบปคะีืห์ใไุแูพขชจ็ผถโธณซฟศษญฐๆำฉภฝฎฏฑฒฬฮฤ", cased=False),
)
"""Languages whose legacy encodings use one byte per letter."""

FREQUENT = {
    "zh": (
        "的一是不了在人有我他这中大来上个国到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可里后小么"
        "心多天而能好都然没日于起还发成事只作当想看文无开手十用主行方又如前所本见经头面公同三已老从动两长请名"
        "现民样分将外但身些与高意进把法此实回二理美点月明其种声全工己话儿向情部正定女问力机给等几很业最间新什打便"
        "位因重被走电四第门相次东政海口使教西再平真听世气少关并内加化由却代军产入先山五太水万市"
        "编号称类型价格单产品司度份金额总计删除选择更改保存文件用户密码输入登录添加数据信息系统设置管理"
    ),
    "zh-Hant": (
        "的一是不了在人有我他這中大來上個國到說們為子和你地出道也時年得就那要下以生會自著去之過家學對可裡後小麼"
        "心多天而能好都然沒日於起還發成事只作當想看文無開手十用主行方又如前所本見經頭面公同三已老從動兩長請名"
        "現民樣分將外但身些與高意進把法此實回二理美點月明其種聲全工己話兒向情部正定女問力機給等幾很業最間新什打便"
        "位因重被走電四第門相次東政海口使教西再平真聽世氣少關並內加化由卻代軍產入先山五太水萬市"
        "編號稱類型價格單產品司度份金額總計刪除選擇更改儲存檔案用戶密碼輸入登入新增資料訊息系統設定管理"
    ),
    "ja": (
        "のいにしはをたがとでてるなれさかすりっもこらくまうよめきつんあえけちそおせどだじみわやろばげひほぎょ"
        "ゃゅべぶふむづずびごぐぞへねぬーンスルトリイラクアシタロテドレフジコサマムデプメバビオキニグパカウセ"
    ),
    "ko": (
        "이다는을가의에고하지로기한사도어은를시인서나대자리정그아있해수일여부과스라장전주보만원제구상들으니습안"
        "세요입오성용공비조신동선소계할경모무문된되당면때모것게적중분화유우미연생실간위회내번년월날"
    ),
}
"""Frequent characters by East Asian language."""

PUNCTUATION = "、。，．・：；！？（）「」『』《》【】“”‘’—…～　"
"""Punctuation marks that occur between East Asian characters."""

MARKS = "“”’«»–—…\u00a0„‘°№§•·€£©®×½º²¿¡ª³¼¾™"
"""Punctuation and symbols that occur between letters of any language, most frequent first."""
