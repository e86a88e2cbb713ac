"""English word lists of the extraction rules: closed classes, personal titles, words that show an entity type."""


def word_set(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


# Words that are never a name alone.
STOP_WORDS = word_set(
    """a about above after again against all almost along already also although always among an and another any
    anyone anything are as at away back be became because become been before behind being below between both but
    by came can cannot could did do does doing done down during each either else enough especially etc even ever
    every everyone everything except few first for former from further get given go had has have having he hence
    her here hers herself him himself his how however i if in indeed instead into is it its itself just last
    later least less let like made make many may me might mine more moreover most much must my myself near
    neither never next no nobody none nor not nothing now of off often on once one only onto or other others
    otherwise our ours ourselves out over own per perhaps please quite rather really same several shall she
    should since so some someone something sometimes soon still such than that the their theirs them themselves
    then there therefore these they this those though through throughout thus to together too toward towards two
    under unless until unto up upon us use used using usually very via was way we well were what whatever when
    where whereas whether which while who whoever whom whose why will with within without would yes yet you your
    yours yourself e.g i.e vs cf don't doesn't isn't can't won't it's i'm i've that's there's"""
)

# Common words at the start of sentences, where they are capitalised without being names.
SENTENCE_STARTERS = STOP_WORDS | word_set(
    """according actually additionally afterwards ago albeit alternatively altogether anyway apart apparently
    approximately around asked assuming based basically beginning beside besides best better beyond briefly
    built called certain certainly clearly commonly compared comparing concerning consequently consider
    considering containing conversely currently depending described despite directed due earlier early eight
    eighty eleven equally essentially eventually everybody everywhere evidently exactly example examples fifth
    fifty final finally five following for formerly forty found four fourth frequently generally getting great
    half hello hopefully hundred hundreds ideally immediately importantly including increasingly inside
    interestingly into keep known lastly late lately later letting located long looking mainly making maybe
    meanwhile merely million minor moreover mostly namely nearly necessary needless nevertheless new news nine
    ninety nobody nonetheless normally notably note nowadays number numerous obviously occasionally old
    originally outside overall part particularly people perhaps played possibly presumably previous previously
    primarily prior probably produced provided published putting random rarely recent recently regarding
    regardless released remember resulting roughly say second secondly see seeing seemingly seven seventh
    seventy significantly similar similarly simply simultaneously six sixth sixty slightly somehow sometimes
    somewhat somewhere specifically starting subsequently suddenly supposedly surely take taken taking ten tenth
    thanks thereafter thereby things think third thirdly thirteen thirty thousand thousands three today tomorrow
    tonight traditionally try twelve twenty twice typically ultimately unfortunately unlike unlikely until upon
    usually various virtually want what's whenever wherever whichever whilst whoever whole widely work working
    written yesterday add allow allows append assume assign avoid call check choose click compare compute create
    define delete describe ensure enter explain find follow give go help here's imagine import install invoke
    let's list look name open pass please print read recall refer remove replace return returns run select send
    set show specify start stop suppose test type update verify write born died married"""
)

# Lower-case words inside names. Particles never separate; after `of` and the weak connectors a part is often a name
# of its own.
PARTICLES = word_set(
    "de la le les du des del della di da do dos das van von der den ter ten zu af av al el bin ibn ben st"
)
STRONG_CONNECTORS = PARTICLES | {"of", "the"}
WEAK_CONNECTORS = word_set("and & in for at on to with from by or a an as y e und et into is near under no")
CONNECTORS = STRONG_CONNECTORS | WEAK_CONNECTORS

# Words before a person's name that are not part of it.
HONORIFICS = word_set(
    """abbot admiral ambassador archbishop archduke baron baroness bishop brigadier brother captain cardinal
    chancellor chief colonel commander congressman congresswoman corporal count countess dame deacon dean
    detective doctor dr duchess duke earl emir emperor empress father general governor imam inspector judge
    justice king lady lieutenant lord madame major marquess marshal mayor minister miss mother mr mrs ms officer
    pastor pope premier president prime prince princess professor prof queen rabbi representative rep rev
    reverend saint secretary sen senator sergeant sgt sheikh sheriff sir sister sultan tsar vice viscount capt
    col gen gov hon lt"""
)

# A full stop after these ends no name.
ABBREVIATIONS = word_set(
    "Bros Capt Co Col Corp Cpl Dr Ft Gen Gov Hon Inc Jr Lt Ltd Mr Mrs Ms Mt No Prof Rep Rev Sen Sgt Sr St Ste Vol vs"
)

MONTHS = word_set(
    """january february march april may june july august september october november december jan feb mar apr jun
    jul aug sep sept oct nov dec"""
)
DAYS = word_set("monday tuesday wednesday thursday friday saturday sunday")

# The last or first word of a name that shows its type.
ORGANISATION_WORDS = word_set(
    """academy agency airlines airways alliance army association authority band bank board brewery brigade brothers
    bros bureau center centre church club co college commission committee company confederation conference
    congress consortium co-operative corp corporation council court cricket department division f.c fc
    federation force foundation fund group guild hospital inc industries initiative institute institution
    laboratories laboratory league limited llc ltd ministry motors museum navy network office orchestra
    organisation organization parliament partnership party police press productions records regiment school
    senate society studio studios symphony team trust union united university"""
)
PLACE_WORDS = word_set(
    """abbey airport avenue bay beach bridge building canyon cape castle cathedral cemetery city coast county creek
    desert district falls forest fort garden gardens glacier gulf harbor harbour hill hills house island islands
    isle lake mount mountain mountains ocean palace park parish peak peninsula plateau port province range
    region republic reservoir ridge river road sea square stadium station strait street temple territory tower
    town township valley village volcano mt mts"""
)
WORK_WORDS = word_set("album film novel opera overture saga series show sonata song soundtrack suite trilogy")

EVENT_WORDS = word_set(
    """attack attacks battle bombing bombings campaign championship championships conquest coup crusade cup derby
    earthquake election elections eruption exhibition expedition festival flood games hurricane invasion marathon
    massacre murder murders olympics open prix rebellion referendum revolt revolution riot riots scandal shooting
    shootings siege summit tournament trial uprising war wars"""
)
CONCEPT_WORDS = word_set(
    """algorithm alphabet calendar conjecture cuisine disease dynasty effect equation language languages law method
    model mythology paradox problem protocol religion syndrome theorem theory virus"""
)

GIVEN_NAMES = word_set(
    """aaron adam adrian albert alex alexander alexandra alfred alice allan allen alyssa amanda amy andrea andreas
    andrew angela ann anna anne anthony antonio arthur barbara barry benjamin bernard betty bill billy bob brett
    brian bruce carl carlos carol caroline catherine charles charlie charlotte chris christian christina
    christine christopher claire clara claude colin craig daniel david deborah dennis diana diane donald dorothy
    douglas edgar edith edmund edward eleanor elizabeth ellen emily emma eric ernest ethan eugene eva evelyn
    florence francis francisco frank franz fred frederick gary geoffrey george gerald gilbert giovanni giuseppe
    gordon grace graham gregory guido guy hannah hans harold harry heinrich helen henri henry herbert howard
    hugh ian ida irene isaac isabella ivan jack jacob jacques james jane janet jason jean jeff jeffrey jennifer
    jerry jessica jim jimmy joan joe johann john johnny jonathan jorge jose joseph josephine juan judith judy
    julia julian julie karen karl kate katherine kathleen keith kenneth kevin larry laura lawrence lee leo leon
    leonard lewis linda lisa louis louise lucy luis luke marcel margaret maria marie mario mark martha martin
    mary matthew maurice max michael michel michelle miguel mike nancy nathan nicholas nick nicole nikolai
    norman oliver olivia oscar pablo pamela patricia patrick paul pedro percy peter philip pierre rachel ralph
    raymond rebecca richard rita robert robin roger roland ronald rose roy rudolf russell ruth ryan sally sam
    samuel sandra sara sarah scott sean sebastian sharon shirley simon sofia sophie stanley stefan stephen steve
    steven stuart susan sylvia terry theodore thomas tim timothy tom tommy tony ursula victor victoria vincent
    virginia vladimir walter warren wayne wilhelm william yuri"""
)

# Common nouns that end a name whose other words are capitalised: `Bayes theorem`, `English language`.
CLOSING_NOUNS = word_set(
    """algorithm alphabet assassination attack attacks battle bombing bombings calendar campaign championship
    championships comics conjecture crisis culture cuisine disaster disease dynasty earthquake effect election
    elections equation expedition family festival language languages law massacre method model movement murder
    murders mythology paradox people peoples problem protocol rebellion religion revolt riot riots scandal
    script series shooting shootings syndrome theorem theory tournament treaty trial tribe virus"""
)

# Words by which examples name anything; the first ones name nothing else.
UNMISTAKABLE_PLACEHOLDERS = word_set("foo baz qux quux foobar foobaz xyzzy spam lorem ipsum")
PLACEHOLDERS = UNMISTAKABLE_PLACEHOLDERS | word_set("bar ham eggs egg corge grault plugh blah dolor")

# What a name in code ends with that says what kind of thing it is.
KINDS_IN_CODE = word_set(
    "app arg args attr attrs class cls config dict enum exc func int iter lib meta mixin mod obj param pkg proto "
    "str struct subclass tuple var"
)

# Headings that name a part of a document, not a subject.
PARTS_OF_DOCUMENTS = frozenset(
    (
        "abstract", "acknowledgements", "acknowledgments", "annex", "appendix", "background", "backwards compatibility",
        "bibliography", "biography", "career", "changelog", "conclusion", "conclusions", "contents", "copyright",
        "definition", "definitions", "description", "details", "discussion", "early life", "example", "examples",
        "external links", "faq", "footnotes", "further reading", "future work", "history", "how to teach this",
        "implementation", "installation", "introduction", "legacy", "license", "method", "methods", "motivation",
        "notes", "open issues", "overview", "personal life", "plot", "problem", "proposal", "rationale",
        "reception", "reference implementation", "references", "rejected ideas", "related work", "results",
        "security implications", "see also", "solution", "sources", "specification", "summary", "table of contents",
        "usage",
    )
)  # fmt: skip


def is_part_of_document(heading: str) -> bool:
    """Whether a heading names a part that any document may have, such as `Overview:`."""
    return heading.lower().rstrip(" .:?") in PARTS_OF_DOCUMENTS
