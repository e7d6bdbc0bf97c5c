package hdiutil

// localized are parts of the reasons that tools print in other languages of
// macOS, by class and language (BCP 47, sorted). The frame around a reason is
// English ("hdiutil: create failed - …"); the reason is the system's text for an
// errno, or the one of the disk image framework, in the language of the user,
// in any environment. Stems are used, since the texts change with the releases.
// "|" separates alternatives; "*" is any text within the line.
var localized = map[Class]string{
	Auth: `ar المصادقة|عبارة الدخول غير|كلمة السر غير; ca d'autenticació|contrasenya incorrecta;
		cs ověřování totožnosti|nesprávné*heslo|nesprávné přístup|chybné heslo|ověření; da godkendelsesfejl|
		forkert adgangskode|forkert kodeord; de authentifizierungsfehler|fehler b*authentifizier|
		authentifizierung fehlge|falsches passwort|falsches kennwort|passwort*falsch|passwort*nicht korrekt;
		el ελέγχου ταυτότητας|εσφαλμένη συνθηματική; es autenticación|contraseña*incorrecta|autentificación|
		contraseña errónea|contraseña no válida; fi todennus|väärä salaus|väärä salasana; fr d'authentification|
		phrase secrète incorrecte|mot de passe*incorrect|mauvais mot de passe|mot de passe erroné; he שגיאת אימות|
		סיסמה לא תקין|סיסמה שגוי; hi प्रमाणन|ग़लत पास|गलत पास; hr greška autor|greška autent|netočna lozinka;
		hu hitelesítési hiba|helytelen jel; id kesalahan pengesahan|autentikasi|frasa sandi salah|kata sandi salah;
		it autenticazione|frase chiave errata|password errata|password non corretta|password sbagliata|
		password*incorrett|password non valida; ja 認証エラー|認証に失敗|認証できません|パスフレーズ*正しく|パスワード*正しく|パスワード*違|パスワード*無効; ko 인증 오류|
		인증 실패|인증에 실패|올바르지 않은 암호|암호*올바르지|암호*틀|비밀번호|암호*잘못|잘못된 암호; ms ralat pengesahan|frasa laluan salah;
		nb autentiserings|feil passord; nl authenticatie|onjuiste wachtzin|onjuist wachtwoord|wachtwoord*onjuist|
		verkeerd; pl błąd uwierzytelni|uwierzytelnianie nie|nieprawidłowe hasło|niepoprawne hasło|hasło*niepraw|
		błędne hasło; pt senha*incorreta|palavra-passe incorreta|senha inválida|autentica; ro autentificare|
		frază de acces incorect|parolă incorect; ru аутентификаци|неверная кодовая|подлинност|парол; sk chyba autent|
		nesprávne heslo; sv autentiserings|felaktig lösen|fel lösen|felaktigt lösen|lösenord; th การตรวจสอบสิทธิ์|
		รหัสผ่านไม่ถูกต้อง; tr kimlik doğrulama|parola; uk неправильна фраза|неправильний пароль|автентифік|
		невірний пароль; vi xác thực|mật khẩu không đúng|sai mật khẩu; zh-Hans 认证错误|认证失败|鉴定错误|验证错误|密码*不正确|密码错误|身份验证|
		密码不对; zh-Hant 認證錯誤|認證失敗|認證發生錯誤|密語錯誤|密語不正確|密碼錯誤|密碼不正確|身份驗證`,
	Busy: `ar مشغول|قيد الاستخدام; ca ocupat; cs zaneprázdn|používán|obsazen; da optaget|i brug|bruges; de belegt|
		in verwendung|in benutzung|wird verwendet|in gebrauch|beschäftigt|wird gerade; el απασχολημέν|σε χρήση;
		es ocupad|en uso|texto no disponible|está siendo utilizad; fi varattu|käytössä; fr occupé|
		en cours d'utilisation|en service|utilisé par; he עסוק|בשימוש; hi व्यस्त|उपयोग में; hr zauzet|u uporabi|
		koristi se; hu foglalt|használatban; id sibuk|sedang digunakan|dipakai; it occupat|in uso|in utilizzo|
		in corso di utilizzo; ja 使用中|ビジー|使用されています; ko 사용 중|사용중|사용되고|바쁨; ms sibuk; nb opptatt|i bruk|brukes;
		nl in gebruik|bezet|wordt gebruikt|bezig; pl zajęt|są używane|jest używan|używany|w użyciu|w użytku;
		pt ocupado|em utilização|em uso; ro ocupat|în uz; ru занят|используется|используют; sk zaneprázdn|obsaden|
		používan; sv upptag|används|i bruk; th แหล่งข้อมูลไม่ว่าง|ทรัพยากรไม่ว่าง|ไฟล์ข้อความไม่ว่าง|กำลังใช้งาน|
		กำลังถูกใช้; tr meşgul|kullanımda|kullanılıyor; uk зайнят|у роботі|використовується; vi bận; zh-Hans 资源忙|正忙|忙碌|
		文件忙|占用|正在使用|正被使用|繁忙|使用中; zh-Hant 忙碌|忙線|使用中|被使用|正在使用`,
	Canceled: `ar إلغاء العملية; ca cancel·la; cs zrušena; da annulleret|annullerede; de abgebrochen; el ακυρώθηκε|
		ακύρωσε; es operación cancelada|canceló|ha cancelado; fi kumottu|kumosi|perui|peruttu; fr annulé; he בוטלה;
		hi रद्द; hr poništ; hu visszavon|megszakította; id dibatalkan|membatalkan; it annullat; ja キャンセル; ko 취소;
		ms dibatalkan|membatalkan; nb handling avbrutt|ble avbrutt|avbrøt; nl geannuleerd|afgebroken; pl anulowan|
		anulował; pt operação*cancelada; ro anulat; ru отменен; sk zrušen|zrušil; sv avbröt; th ยกเลิก; tr vazgeç|
		iptal; uk скасован|скасував; vi bị*hủy|dùng hủy; zh-Hans 取消; zh-Hant 取消`,
	Damaged: `ar صورة*تالفة|اختباري غير صالح|التحقق من صورة; ca imatge*malmes|suma no vàlida|
		verificació de la imatge*fallat; cs poškozen*obraz|obraz*poškozen|neplatný kontrolní|ověřování obrazu*selhalo;
		da ødelagt billede|billeddata ødelagt|diskbilled*beskadiget|ugyldig checksum|kontrol af diskbillede;
		de image*beschädigt|image*defekt|defektes image|beschädigtes*image|ungültige prüfsumme|image-überprüfung fehl|
		prüfsumme ungültig; el κατεστραμμέν*είδωλο|κατεστραμμέν*ειδώλου|είδωλο*κατεστραμμένο|έγκυρο άθροισμα|
		επαλήθευση του ειδώλου; es imagen*dañad|imagen*corrupt|imagen*estropead|suma no válida|suma de comprobación no|
		verificación de la imagen|verificar la imagen|checksum no válid; fi vioittunut|vahingoittunut|
		kelpaamaton tarkistussumma|levytiedoston tarkistus epä; fr image*endommagé|image*corrompu|image*défectueu|
		somme de contrôle incorrecte|somme de contrôle non|vérification de l'image; he דמות*פגומ|סיכום ביקורת לא תקין|
		אימות דמות הכונן נכשל; hi इमेज*करप्ट|करप्ट इमेज|अमान्य चेकसम|इमेज सत्यापन; hr pokvaren image|oštećen*slik|
		nevažeći kontrolni|provjera slike; hu korrupt lemezkép|lemezkép*sérült|érvénytelen ellenőrzőösszeg|
		lemezkép ellenőrzése; id image rusak|image disk rusak|ceksum tidak sah|verifikasi image;
		it immagine*danneggiat|immagine*corrott|immagine*rovinat|checksum non valid|somma di controllo non|
		verifica dell'immagine|checksum errat; ja イメージ*壊|イメージ*破損|壊れ*イメージ|破損*イメージ|無効なチェックサム|チェックサムが|イメージを検証でき|不正なチェックサム;
		ko 손상된*이미지|이미지*손상|유효하지 않은 체크섬|체크섬이 |이미지 확인 실패|손상된 파일; ms imej*tercemar|tambah semak tidak|pengesahan imej;
		nb ødelagt diskfil|diskfil*ødelagt|ugyldig sjekksum|ugyldig kontrollsum|verifisering av diskfil;
		nl beschadigde schijfkopie|schijfkopie*beschadigd|ongeldig controlegetal|schijfkopieverificatie|
		ongeldige checksum; pl obraz*uszkodzon|uszkodzony obraz|nieważna suma|suma kontrolna jest|weryfikacja obrazu|
		jest uszkodzon; pt soma de verificação inválida|checksum inv|verificação da imagem|danificad|corrompid;
		ro imagin*corupt|imagin*deterior|control nevalidă|verificarea imaginii; ru образ*поврежд|поврежд*образ|
		образ*испорчен|неверная контрольная|проверке образа|неверная сумма; sk poškoden*obraz|obraz*poškoden|
		chybný kontrolný|overovanie obrazu; sv skadad avbild|avbild*skada|ogiltig kontrollsumma|skivavbildsverifiering|
		är skadad; th ภาพดิสก์เสีย|เช็คซัมไม่ถูก|ยืนยันภาพดิสก์ไม่สำเร็จ; tr bozuk görüntü|görüntü*boz|
		geçersiz sağlama|görüntüsü doğrulanamadı; uk пошкоджен*образ|образ*пошкоджен|неправильна контрольна|
		перевірки образу; vi hình ảnh bị hỏng|hình ảnh bị lỗi|ảnh đĩa*bị hỏng|tổng không hợp lệ|xác minh ảnh đĩa;
		zh-Hans 映像*破坏|映像*损|损坏的*映像|破坏的映像|无效的校验|校验和不|映像验证失败|损坏的磁盘; zh-Hant 映像*損|映像*毀|損壞的*映像|影像*損毀|損毀的*映像|無效的核對|映像*驗證失敗`,
	Exists: `ar الملف موجود|غير فارغ; ca ja existeix|no està buit; cs soubor existuje|již existuje|není prázdný;
		da arkiv findes|arkivet findes|findes allerede|ikke tomt|eksisterer allerede; de datei existiert|
		existiert bereits|nicht leer|bereits vorhanden; el αρχείο υπάρχει|υπάρχει ήδη|δεν είναι κεν;
		es archivo existente|ya existe|no está vacío; fi tiedosto olemassa|tiedosto on olemassa|jo olemassa|ei tyhjä|
		ei ole tyhjä; fr fichier existe|existe déjà|répertoire non vide|pas vide; he הקובץ קיים|כבר קיים|אינה ריקה;
		hi मौजूद है|ख़ाली नहीं|खाली नहीं; hr datoteka postoji|već postoji|nije prazan; hu fájl létezik|már létezik|
		nem üres; id file ada|sudah ada|tidak kosong; it file esiste|esiste già|non vuota; ja ファイルが存在し|すでに存在|既に存在|
		すでにあり|空ではありません; ko 파일 존재|파일이 존재|이미 존재|이미 있|비어있지|비어 있지; ms fail wujud|sudah wujud|bukan kosong; nb filen finnes|
		finnes allerede|ikke tom|eksisterer allerede; nl bestaat al|niet leeg; pl plik istnieje|już istnieje|
		nie jest pusty; pt arquivo existe|já existe|ficheiro existente|não está vazio|não vazio; ro fișierul există|
		există deja|nu este gol; ru файл существует|уже существует|непустая|не пуст; sk súbor existuje|už existuje|
		nie je prázdny; sv finns redan|inte tom; th อยู่แล้ว|ไม่ว่างเปล่า; tr zaten var|dosya var|boş değil;
		uk уже існує|вже існує|не порожн; vi tệp tồn tại|đã tồn tại|không trống; zh-Hans 已经存在|已存在|非空|不为空; zh-Hant 已存在|
		已經存在|不是空的`,
	InputOutput: `ar الإدخال/الإخراج|خطأ في الجهاز; ca entrada/sortida|error de dispositiu; cs vstupu/výstupu|
		chyba zařízení; da i/o-fejl|input/output-fejl|fejl på enhed; de ein-/ausgabe|eingabe-/ausgabe|e/a-fehler|
		gerätefehler; el εισόδου/εξόδου|σφάλμα συσκευής; es entrada/salida|error del dispositivo; fi i/o-virhe|
		siirräntävirhe|laitevirhe; fr entrée/sortie|erreur du périphérique|erreur d'appareil; he פלט/קלט|קלט/פלט|
		שגיאת התקן; hi इनपुट/आउटपुट|डिवाइस एरर; hr ulazno/izlazna|greška uređaja; hu kimeneti/bemeneti|
		bemeneti/kimeneti|eszközhiba; id input/output|kesalahan perangkat; it input/output|errore del dispositivo|
		errore di i/o; ja 入出力|装置のエラー|入力/出力; ko 입/출력|입출력|장치 오류; ms input/output|ralat peranti; nb inn-/utdata|i/u-feil|
		enhetsfeil; nl invoer-/uitvoer|in-/uitvoer|apparaatfout; pl we/wy|wejścia/wyjścia|błąd urządzenia;
		pt entrada/saída|erro de dispositivo|erro do dispositivo; ro intrare/ieșire|eroare dispozitiv; ru ввода/вывода|
		ввода-вывода|ошибка устройства; sk vstupno/výstupná|chyba zariadenia; sv in-/utmatning|in-/utdata|i/o-fel|
		enhetsfel; th ข้อผิดพลาด i/o|อุปกรณ์ผิดพลาด; tr giriş/çıkış|aygıt hatası; uk вводу/виводу|введення-виведення|
		помилка пристрою; vi nhập/xuất|vào/ra|lỗi thiết bị; zh-Hans 输入/输出|输入输出|设备错误; zh-Hant 輸入/輸出|輸入輸出|裝置錯誤`,
	Invalid: `ar وسيطة غير صالحة; ca argument no vàlid; cs neplatný argument; da ugyldigt argument;
		de ungültiges argument|ungültiger parameter; el έγκυρο όρισμα; es argumento no válido|argumento inválido;
		fi virheellinen argumentti|kelpaamaton argumentti; fr paramètre invalide|argument non valide|argument invalide|
		paramètre non valide; he ארגומנט; hi आर्ग्युमेंट; hr nevažeći argument; hu érvénytelen argumentum;
		id argumen tidak; it argomento non valido; ja 引数; ko 않은 변수|인수; ms argumen tidak; nb ugyldig argument;
		nl ongeldig argument; pl nieprawidłowy argument|niepoprawny argument; pt argumento inválido;
		ro argument nevalid|argument invalid; ru неверный аргумент|недопустимый аргумент; sk neplatný argument;
		sv ogiltigt argument; th อาร์กิวเมนต์; tr geçersiz değişken|geçersiz argüman|geçersiz bağımsız;
		uk неправильний аргумент|недійсний аргумент; vi đối số; zh-Hans 参数|自变量; zh-Hant 引數|參數`,
	Locked: `ar مؤقت; ca temporalment; cs dočasně|přechodně; da midlertidig|i øjeblikket; de momentan|vorübergehend|
		zeitweilig|zeitweise|temporär|derzeit|zurzeit|zur zeit; el προσωρινά; es temporalmente|momentáneamente|
		por el momento; fi väliaikaisesti|tilapäisesti|hetkellisesti; fr temporairement|momentanément|provisoirement|
		pour le moment; he זמנית; hi अस्थायी; hr privremeno; hu átmenetileg|ideiglenesen; id tersedia*sementara|
		sementara*tersedia; it momentaneamente|temporaneamente|provvisoriamente; ja 一時的; ko 일시; ms tersedia*sementara;
		nb midlertidig|for øyeblikket; nl tijdelijk|momenteel; pl czasowo|chwilowo|przejściowo; pt temporariamente|
		momentaneamente; ro indisponibil|temporar nedisponibil; ru временно; sk dočasne; sv just nu|tillfälligt|
		för tillfället; th ชั่วคราว; tr geçici; uk тимчасово; vi tạm thời; zh-Hans 暂时|暂不可用|临时; zh-Hant 暫時|暫無`,
	NoDevice: `ar تكوين الجهاز; ca no*configurat; cs nakonfigurov; da ikke*konfigurer; de nicht konfiguriert|
		nicht eingerichtet; el διαμορφω|ρυθμιστ|παράμετροι της συσκευής; es no*configurad|sin configurar;
		fi ei ole määritetty|ei ole konfiguroitu; fr non*configur|pas*configur|appareil non config; he מוגדר|לא הוגדר;
		hi कॉन्फ़िगर; hr nije postavljen|nije konfigur; hu konfigur; id tidak dikonfigurasi; it non*configurat;
		ja 構成されていません|設定されていません|設定されていない|構成されていない; ko 구성되지|설정되지; ms tidak dikonfigurasi; nb ikke*konfigurer;
		nl niet*geconfigureerd|niet ingesteld; pl skonfigurowan; pt não*configurad; ro nu*configurat|neconfigurat;
		ru не настро|не сконфигур; sk nie je nastaven|nie je nakonfig; sv inte*konfigur|inte inställd|ej konfigur;
		th กำหนดค่า|ตั้งค่า; tr ayarlanmamış|yapılandırılma; uk не налаштован|не сконфігур; vi cấu hình|thiết lập;
		zh-Hans 未配置|没有配置|未设置|未被配置|配置设备; zh-Hant 設定裝置|未設定|未配置|沒有設定`,
	NoFileSystem: `ar أنظمة ملفات|نظام ملفات قابل; ca sistemes*muntar|cap sistema; cs připojiteln|žádn*souborov;
		da ingen*system; de kein*dateisystem|mountbar; el προσαρτώ|προσαρτήσιμ|συστήματα αρχείων; es archivos*mont|
		hay*sistema*archivos|ningún sistema; fi kelvollisia tiedostoj|käyttökelpoisia tiedostoj|ei*tiedostojärjestelm;
		fr fichiers mont|aucun système|pas de système; he מערכות קבצים|מערכת קבצים שניתן; hi माउंट करने योग्य|
		फ़ाइल सिस्टम नहीं; hr sustav*podignuti|nema*sustav; hu csatolható|nincs*fájlrendszer; id ada sistem file|
		sistem file yang dapat; it file system attiv|file system mont|nessun file system|file system da; ja マウントできる|
		マウント可能|ファイルシステムがありません|ファイルシステムはありません|ファイルシステムが見つかりません; ko 마운트 가능|마운트할 수|파일 시스템이 없|파일 시스템 없;
		ms sistem fail boleh|tiada sistem fail; nb ingen*filsystem|monterbar; nl activeerbare|koppelbare|
		geen*bestandssyste; pl do zamontowania|montowaln|brak*systemów plików; pt montáv|montar*sistema|
		possam ser montad|nenhum sistema; ro fișiere de montat|montabil|niciun sistem; ru нет*файловых систем|
		монтируем|смонтировать|подключаемых файл; sk pripojiteľn|žiadn*súborov; sv filsystem*anslutas|monterbar|
		inga*filsystem|inget*filsystem; th ระบบไฟล์ที่|ไม่มีระบบไฟล์; tr bağlanabil|dosya sistemi yok;
		uk файлових систем; vi hệ thống tệp có thể|không có hệ thống tệp; zh-Hans 装载的文件系统|挂载的文件系统|没有*文件系统|无*文件系统|
		找不到*文件系统; zh-Hant 裝載的檔案系統|掛載的檔案系統|沒有*檔案系統|找不到*檔案系統`,
	NoHelper: `ar عمليات تابعة; ca processos secundaris; cs podřízené procesy|podřízený proces;
		da underliggende processer|underprocesser; de untergeordneten prozess|kindprozess; el απόγονες|
		θυγατρικές διεργ; es procesos secundarios|procesos hijo; fi lapsiprosess; fr processus enfant|processus fils;
		he תהליכים בנים|תהליכי בן; hi चाइल्ड प्रोसेस; hr pod-procesa|podprocesa; hu gyerekfolyamat|gyermekfolyamat;
		id proses turunan|proses anak; it processo figlio|processi figli; ja 子プロセス; ko 자식 프로세스|하위 프로세스; ms proses anak;
		nb underordnede prosess|barneprosess; nl onderliggend; pl procesów potomnych; pt processo secundário|
		nível inferior|processos filho|processo filho; ro proces fiu|procese fiu; ru дочерн; sk podriadené procesy;
		sv underordnade process|barnprocess; th กระบวนการลูก; tr bağlı işlem|alt süreç; uk процесу-нащадка|дочірн;
		vi quy trình con|tiến trình con; zh-Hans 子进程; zh-Hant 子程序|子行程`,
	NoMemory: `ar الذاكرة; ca memòria; cs paměť|paměti; da hukommelse; de speicher*zugewiesen|genügend*speicher|
		arbeitsspeicher; el μνήμη; es memoria; fi muistinvaraus|muisti ei; fr mémoire; he זכרון|זיכרון; hi मेमोरी;
		hr memorij; hu memória; id memori; it memoria; ja メモリ; ko 메모리; ms memori; nb minne; nl geheugen; pl pamięci;
		pt memória; ro memoria nu|memorie; ru памят; sk pamäť; sv minne; th หน่วยความจำ; tr bellek; uk пам'ят;
		vi bộ nhớ; zh-Hans 内存; zh-Hant 記憶體`,
	NoSpace: `ar لا توجد مساحة; ca queda espai|espai insuf; cs nezbylo*místo|dostatek místa|žádné*místo|není*místo;
		da plads; de kein platz|speicherplatz|nicht genügend platz|nicht genug platz|platz mehr|ist voll; el χώρος στη|
		επαρκής χώρος; es espacio; fi ole*tilaa|tila ei riitä|tila loppu; fr plus d'espace|espace insuf|
		pas assez d'espace|espace disponible|manque d'espace|disque plein|saturé; he נותר מקום|מספיק מקום; hi जगह;
		hr prostora; hu maradt hely|elég hely|nincs*hely; id ruang; it spazio; ja 容量が不足|容量不足|空き; ko 공간|용량; ms ruang;
		nb plass; nl ruimte|is vol; pl miejsca; pt espaço; ro spațiu; ru нет*места|места на|недостаточно места|
		свободного места|места нет|места для; sk miesto|miesta; sv utrymme kvar|med utrymme|slut på|ledigt utrymme|
		inget utrymme; th พื้นที่; tr yer kalmadı|yeterli*alan|yeterli yer|boş yer|yer yok|alan yok;
		uk місця на пристрої|вільного місця|недостатньо місця|немає місця; vi dung lượng; zh-Hans 空间|磁盘已满; zh-Hant 空間|
		磁碟已滿`,
	NotFound: `ar ملف*دليل|ملف*مجلد|لا يوجد ملف|غير موجود; ca arxiu*directori|fitxer*directori|no existeix;
		cs soubor*adresář|soubor*složk|neexistuje|nenalezen|nebyl nalezen|není takový; da arkiv*bibliotek|fil*mappe|
		fil*katalog|findes ikke|ikke fundet; de datei*ordner|datei*verzeichnis|existiert keine|existiert nicht|
		nicht gefunden|keine solche datei|nicht vorhanden|gibt es nicht; el αρχείο*κατάλογο|αρχείο*φάκελο|δεν υπάρχει|
		δεν βρέθηκε; es archivo*directorio|archivo*carpeta|fichero*directorio|no existe|no se encontró|no encontrad|
		no se ha encontrado|no se ha podido encontrar|no hay tal; fi tiedosto*hakemisto|tiedosto*kansio|ei tiedostoa|
		ei löydy|ei löytynyt|ei ole olemassa|ei ole tiedostoa; fr fichier*répertoire|fichier*dossier|inexistant|
		introuvable|aucun fichier|n'existe pas|pas été trouvé|non trouvé; he קובץ*תיקי|אין קובץ|לא נמצא;
		hi फ़ाइल*डाइरेक्टरी|फ़ाइल*फ़ोल्डर|कोई ऐसी फ़ाइल|ऐसी कोई|नहीं मिल; hr datotek*direktorij|datotek*map|nema takve|
		ne postoji|nije pronađen; hu fájl*könyvtár|fájl*mappa|nincs ilyen|nem található|nem létezik; id file*direktori|
		berkas*direktori|file*folder|tidak ada file|tidak ditemukan; it file*directory|file*cartella|inesistente|
		non esiste|non trovat|nessun file o|impossibile trovare; ja ファイル*ディレクトリ|ファイル*フォルダ|見つかりません|存在しません|ありませんでした|
		が見つから|ファイルがありません; ko 파일*디렉|파일*폴더|찾을 수 없|존재하지 않|파일이 없; ms fail*direktori|fail*folder|tiada fail|tidak ditemui;
		nb fil*katalog|fil*mappe|finnes ikke|ikke funnet; nl bestand*directory|bestand*map|bestaat niet|niet gevonden|
		kan*niet vinden|geen*bestand of; pl plik*katalog|plik*folder|brak takiego|nie ma takiego|nie istnieje|
		nie odnaleziono|nie znalez; pt arquivo*diretório|ficheiro*diretório|arquivo*pasta|ficheiro*pasta|não existe|
		diretório inexistente|não foi encontrad|não encontr; ro fișier*director|fișier*dosar|nu există|nu a fost găsit;
		ru файл*каталог|файл*папк|не существ|нет такого|не найд|не удалось найти|отсутствует; sk súbor*adresár|
		súbor*priečin|žiadny podobný|žiadny taký|neexistuje|nenašiel|nebol nájden; sv fil*katalog|fil*mapp|finns inte|
		ingen sådan|hittade|saknas; th ไฟล์*ไดเรกทอรี|ไฟล์*โฟลเดอร์|ไม่มีไฟล์|ไม่พบ; tr dosya*dizin|dosya*klasör|
		böyle bir dosya|bulunamadı|mevcut değil; uk файл*каталог|файл*папк|немає такого|не існує|не знайд;
		vi tệp*thư mục|không có tệp|không tìm thấy|không tồn tại; zh-Hans 文件*目录|文件*文件夹|无此文件|没有那个文件|没有此文件|没有这个文件|没有此类文件|
		没有这样的文件|没有该文件|找不到|未找到|不存在|没有找到|没有文件; zh-Hant 檔案*目錄|檔案*檔案夾|檔案*資料夾|沒有類似的檔案|沒有此檔案|沒有這個檔案|沒有該檔案|沒有此類檔案|找不到|不存在|未找到|
		無此檔案`,
	NotImage: `ar التعرف على الصورة|ليس صورة; ca no reconeguda|no és una imatge; cs rozpoznán|není obraz; da genkendt|
		genkendes|ikke et diskbillede; de erkannt|kein image; el αναγνωρίζεται|δεν είναι είδωλο; es reconocid|
		no se reconoce|no es una imagen; fi ei tunnistet|ei ole levytiedosto; fr reconnu|n'est pas une image; he מזוהה|
		לא זוהתה|אינו דמות; hi पहचानी|डिस्क इमेज नहीं; hr prepoznat|nije slika; hu ismerhető fel|felismerhető|
		nem egy lemezkép; id image*dikenal|bukan image; it riconosciut|non è un'immagine; ja 認識でき|認識されません|イメージ*認識|
		認識*イメージ|イメージではありません; ko 인식할 수 없|인식되지|이미지*인식|인식*이미지|이미지가 아; ms imej*dikenal|bukan imej; nb gjenkjen|
		ikke en diskfil; nl herkend|geen schijfkopie; pl nierozpoznan|nie rozpoznan|nie jest obrazem; pt reconhecid|
		não é uma imagem; ro recunoscut|nu este o imagine; ru распозна|не является образом; sk rozpoznan|nie je obraz;
		sv inte igen|inte en skivavbild; th ไม่รู้จักภาพ|ไม่ใช่ภาพ; tr tanın|görüntüsü değil; uk розпізна|не є образом;
		vi nhận dạng|nhận diện|không nhận ra|không phải là ảnh; zh-Hans 法识别|不是磁盘映像; zh-Hant 辨識|無法識別|不是磁碟映像`,
	NotPermitted: `ar غير مسموح; ca no és permesa|no permesa|no està permesa; cs nepovol|není povol|není dovol|zakázán;
		da ikke tillad|tillades ikke; de nicht erlaubt|nicht zul|nicht gestattet|nicht zugelassen|verboten|unzulässig;
		el δεν επιτρέπεται; es no*permitid|no*autorizad|prohibid; fi ei*sallit; fr non permis|non autoris|pas permis|
		pas autoris|interdit; he הפעולה אסורה|אינה מורשית|אינה מותרת|לא מורשית; hi अनुमति नहीं है; hr nije do|
		nedopušten; hu nem enged; id tidak diizinkan|tidak diperbolehkan; it non*consentit|non*permess|non*autorizz|
		vietat; ja 許可されません|許可されてい|許可されない; ko 허용되지|허가되지|허용 안 됨|허락되지; ms tidak dibenarkan; nb ikke tillat|ikke lov;
		nl niet toegestaan|niet toegelaten|verboten|verboden; pl nie*dozwol|niedopuszcz|zabron; pt não*permitid|
		não*autorizad|proibid; ro nepermis|nu este permis|interzis; ru не разреш|не позвол|не допуск|не допуст|
		запрещена|запрещено; sk nepovol|nie je povol|zakázan; sv inte tillåt|otillåt|ej tillåt; th ไม่อนุญาต|
		ไม่ได้รับอนุญาต; tr izin verilmiyor|izin verilmez|izinli değil|izin yok; uk не дозвол|заборонена|заборонено;
		vi không được phép|không được cho phép; zh-Hans 不被允许|不允许|未获允许|未经允许|没有得到允许|禁止|未被允许; zh-Hant 未經允許|不允許|不被允許|禁止|不准許`,
	OpenFiles: `ar الملفات المفتوحة; ca arxius oberts; cs otevřených souborů; da åbne arkiver|åbne filer;
		de offene dateien|geöffnete dateien; el ανοιχτά αρχεία|ανοικτά αρχεία; es archivos abiertos;
		fi avoimia tiedostoja; fr fichiers ouverts; he קבצים פתוחים; hi खुली हुई फ़ाइलें; hr otvorenih datoteka;
		hu nyitott fájl; id file yang dibuka|file terbuka|file yang terbuka; it file aperti; ja 開いているファイル|ファイルを開きすぎ;
		ko 파일이 열려|열린 파일; ms fail terbuka; nb åpne filer; nl open bestanden|geopende bestanden; pl otwartych plików;
		pt arquivos abertos|ficheiros abertos; ro fișiere deschise; ru открыто*файлов|открытых файлов;
		sk otvorených súborov; sv öppna filer; th ไฟล์ที่เปิด|ไฟล์เปิด; tr açık dosya; uk відкритих файлів|
		забагато файлів; vi tệp đang mở; zh-Hans 打开的文件; zh-Hant 開啟的檔案`,
	Permission: `ar رفض الإذن|تفاعل المستخدم; ca permís denegat|interacció de l'usuari; cs oprávnění zamítnuto|
		přístup odepřen|přístup odmítnut|požadována autorizace|přístup byl; da adgang nægtet|tilladelse nægtet|
		brugerinteraktion; de zugriff verweigert|berechtigung|zugriffsrecht|benutzerinteraktion|zugriff nicht|
		zugriff abgelehnt; el άρνηση δικαιώματος|άρνηση πρόσβασης|αλληλεπίδραση χρήστη; es acceso denegado|
		interacción del usuario|permiso|acceso rechazado; fi ei oikeutta|ei oikeuksia|käyttö estetty|pääsy estetty|
		pääsy evätty|käyttäjän toimia; fr autorisation refusée|permission refusée|permission non accordée|accès refusé|
		intervention de l'utilisateur|accès interdit|droits insuf; he אין הרשאה|הרשאה נדחתה|גישה נדחתה|פעולת משתמש;
		hi अनुमति नहीं दी|अनुमति अस्वी|यूज़र इंटर; hr odbijeno dopuštenje|dopuštenje odbijeno|dozvola odbijena|
		pristup odbijen|djelovanje korisnika; hu engedély megtagadva|hozzáférés megtagadva|felhasználói interakció;
		id izin ditolak|akses ditolak|interaksi pengguna; it accesso negato|autorizzazione negata|interazione utente|
		permesso|rifiutat; ja アクセス権|アクセスが拒否|アクセスは拒否|許可がありません|ユーザの操作が必要|アクセス許可|権限; ko 접근 거부|접근이 거부|액세스가 거부|사용자 상호 작용|권한;
		ms keizinan ditolak|kebenaran ditolak|interaksi pengguna; nb ingen tilgang|tilgang nekt|ikke tilgang|
		brukerinteraksjon; nl bevoegdhe|toestemming geweigerd|gebruikersinteractie|toegang; pl odmowa dostępu|
		odmowa upr|brak dostępu|brak uprawnień|odmówiono|reakcji użytkownika; pt acesso negado|interação do u|
		permissão; ro permisiune respinsă|permisiune refuzată|acces refuzat|acces interzis|interacțiune utilizator;
		ru доступ запрещ|отказано в доступе|доступе отказано|нет доступа|недостаточно прав|нет прав|
		взаимодействие с пользователем; sk prístup zamietnut|prístup odmietnut|oprávnenie zamietnut|
		užívateľská interakcia; sv behörighet gavs|behörighet saknas|behörighet nekad|användaråtgärd|åtkomst;
		th ปฏิเสธ|ต้องการการอนุญาต; tr izin verilmedi|izin reddedildi|kullanıcı etkileşimi|izniniz|erişim;
		uk доступ заборон|відмовлено|взаємодія з користувачем|немає доступу|немає прав; vi giấy phép bị từ chối|
		quyền bị từ chối|từ chối quyền|tương tác người dùng|truy cập; zh-Hans 权限被拒|权限不|没有权限|没有访问|访问被拒|许可被拒|用户互动|拒绝;
		zh-Hant 權限被拒|權限不足|取用權遭拒|取用權限|存取被拒|沒有權限|互動操作|拒絕`,
	Quota: `ar الحصة; cs kvóta; da kvote; de kontingent; el ορίων δίσκου|όριο δίσκου; es cuota; fi levyvaraus|kiintiö;
		he הקצאת מקום|מכסת; hi की क्षमता; hr kvota; hu kvóta; id kuota; ja 割り当て容量|クォータ; ko 디스크 할당|할당량; ms kuota;
		nb kvote; pl przydziału; pt cota de; ro cotă|cota; ru квот; sk kvót; sv skivutrymmet|kvot; th โควต้า|โควตา;
		tr kotası; uk квот; vi hạn mức; zh-Hans 配额; zh-Hant 光碟數目|容量用罄|配額`,
	ReadOnly: `ar للقراءة فقط; ca només de lectura; cs pouze ke čtení|pouze pro čtení|jen pro čtení;
		da skrivebeskyttet; de schreibgeschützt|nur lesbar|nur-lese; el μόνο για ανάγνωση; es solo lectura|
		sólo lectura; fi kirjoitussuoj|vain luku; fr lecture seule; he לקריאה בלבד; hi रीड ओनली|केवल पढ़ने;
		hr samo za čitanje; hu csak olvasható; id hanya baca|hanya-baca; it sola lettura; ja 読み出し専用|読み取り専用|読み込み専用;
		ko 읽기 전용; ms baca sahaja; nb kun-les|skrivebeskyttet|skrivebeskytta; nl alleen-lezen|alleen lezen;
		pl tylko do odczytu; pt somente leitura|só de leitura|apenas leitura|somente para leitura; ro doar citire|
		doar în citire|numai citire; ru только*чтени; sk len na čítanie; sv skrivskydd|endast läs; th อ่านอย่างเดียว;
		tr salt okunur; uk не дозволяє запис|для читання; vi chỉ đọc; zh-Hans 只读; zh-Hant 唯讀`,
	TimedOut: `ar مهلة; ca temps*esgotat|temps d'espera; cs čas*vypršel|časový limit; da tid*udløb|udløbet|timeout;
		de abgelaufen|zeitlimit|zeitüberschreitung|zeitlich|timeout; el χρόν|χρονικό όριο|χρονικού ορίου;
		es tiempo*excedid|caducad|tiempo*agotado|agotó el tiempo|tiempo de espera|tiempo límite; fi aika*loppui|
		aikaraja|aikakatkai; fr temps*écoulé|temps d'attente|délai|expiré; he תם זמנה|תם הזמן|פסק זמן|חלף הזמן;
		hi टाइमआउट|समय समाप्त; hr isteklo; hu túllépte az idő|időkorlát|időtúl; id waktu*habis|kehabisan waktu|
		waktu tunggu; it tempo*scad|tempo*esaurit|scaduto il tempo|timeout; ja タイムアウト; ko 시간 초과|시간이 초과; ms tamat masa;
		nb tid*utløp|utløpt|tidsavbru; nl tijd*verstreken|tijdslimiet|time-out|verlopen|timeout; pl limitu czasu|
		upłynął|czas*minął|przekroczono; pt tempo*esgot|tempo*excedid|tempo limite|tempo disponível|tempo de espera|
		expirou; ro expirat|timpul; ru ресурс времени|время ожидания|времени ожидания|тайм-аут|таймаут|истекло|
		превышен; sk vypršal; sv tid*gått ut|tiden*ute|tidsgräns; th หมดเวลา; tr zaman*aş|süresi doldu;
		uk час на операцію|час очікування|часу очікування|тайм-аут|вийшов час|минув; vi hết thời gian|thời gian chờ|
		quá thời gian; zh-Hans 超时; zh-Hant 逾時|超時`,
	TooLarge: `ar كبير جد|كبير للغاية|كبيرة جد|طويلة جد; ca massa gran; cs příliš velk; da for stor; de zu groß;
		el πολύ μεγάλ; es demasiado grande; fi liian suuri; fr trop volumineu|trop grand; he גדול מדי|גדולים מדי|
		גדולה מדי; hi बहुत बड़; hr prevelik; hu túl nagy; id terlalu besar; it troppo grande|risultato troppo|
		valore troppo|dispositivo troppo; ja 大きすぎ; ko 너무 큽|너무 커|너무 큼; ms terlalu besar; nb for stor; nl te groot|
		resultaat te lang; pl zbyt duż|za duż; pt grande demais|demasiado grande|muito grande; ro prea mare;
		ru слишком больш; sk príliš veľk|hodnota príliš; sv för stor; th ใหญ่เกินไป|สูงเกินไป; tr çok büyük|
		kadar büyük; uk завелик|занадто велик|результат задовгий; vi quá lớn; zh-Hans 太大|过大; zh-Hant 太大|過大`,
	Unsupported: `ar غير مدعوم|لا يدعم|تنفيذ الوظيفة; ca no és compatible|no compatible|no implementada; cs nepodporov|
		není podporov|podporován|neimplement; da understøttes ikke|ikke implement; de nicht unterstützt|
		nicht implementiert; el δεν υποστηρίζ|δεν έχει υλοποιηθεί; es no admitid|no compatible|no es compatible|
		no implementada|no se admite|no soportad; fi ei tue|ei toteutettu; fr non géré|non pris|pas pris|non présente|
		non implémentée; he נתמכת|נתמך|אינה מיושמת; hi समर्थित नहीं|लागू नहीं किया; hr ne podržava|nije podržan|
		nekorištena funkcija; hu nincs támogatva|nem támogat|nincs kifejlesztve; id tidak didukung|tidak diterapkan;
		it non supportat|non è supportat|non implementat; ja 対応していません|サポートされていません|サポートしていません|実装されていません; ko 지원되지|지원하지|
		구현되지 않았습니다; ms tidak disokong|tidak dilaksanakan; nb støttes ikke|ikke implement; nl niet ondersteund|
		niet geïmplementeerd; pl nie jest obsługiwan|nieobsługiwan|niezaimplement; pt incompatível|não suportad|
		não é suportad|não é compatível|não compatível|não implementad; ro neacceptat|nu este accept|
		nu este compatibil|nu este implement; ru не поддерживается|неприменимая функция|не реализован; sk nepodporovan|
		nie je podporovan|nebola uskutočnená; sv stöds inte|stöds ej|inte införd; th ไม่รองรับ|ไม่ได้ทำตามฟังก์ชั่น;
		tr desteklenmiyor|desteklemiyor|gerçekleştirilmemiş; uk не підтриму|не реалізовано; vi hỗ trợ|
		không được triển khai; zh-Hans 不支持|不被*支持|未实现; zh-Hant 不支援|未能執行|不能執行`,
}
